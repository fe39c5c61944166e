// What users see of mmtrain eval's tasks and of a report of several runs.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/mmtrain_process.h"
#include "tests/data/toy_source.h"
#include "tests/run/two_step_recipe.h"

using namespace mm;
using namespace mm::test;
using mm::data::test::TempDir;

namespace {

Ended mmtrain(const TempDir& dir, std::vector<std::string> arguments) {
  return Mmtrain(dir.path(), std::move(arguments)).wait();
}

/// A run of two steps on toy captions in dir/name.
std::string write_run(const TempDir& dir, const std::string& name, const std::string& rate) {
  data::test::write_jsonl(dir / "in.jsonl", data::test::good_rows(12));
  if (!std::filesystem::exists(dir / "data"))
    data::pack_dataset(data::test::toy_options(dir / "in.jsonl"), {.output = dir / "data"});
  write_file_atomic(dir / "recipe.toml", run::test::kTwoStepRecipe);
  const std::string run = (dir / name).string();
  REQUIRE(mmtrain(dir, {"run", (dir / "recipe.toml").string(), "--run", run, "--set",
                        "stage.0.lr.language=" + rate})
              .status.ok());
  return run;
}

}  // namespace

TEST_CASE("mmtrain eval --task: one line a task, JSON, the answer file, wrong words and sets") {
  TempDir dir;
  const std::string run = write_run(dir, "run", "1e-2"), data = (dir / "data").string(),
                    file = (dir / "answers.jsonl").string();
  const Ended text = mmtrain(dir, {"eval", "--from", run, "--data", data, "--task",
                                   "perplexity,captions", "--answers", file});
  CHECK(text.status.ok());
  CHECK(text.output.find("captions     samples 12  bleu_1 ") != std::string::npos);
  CHECK(text.output.find("perplexity   samples 12  targets ") != std::string::npos);
  const std::string answers = read_file(file);
  CHECK(std::count(answers.begin(), answers.end(), '\n') == 12);
  CHECK(parse_json(answers.substr(0, answers.find('\n')), "answer")["model_id"] == "run-step2");
  const Json stored = read_json_file(dir / "run" / "eval.json");
  CHECK(stored["tasks"].size() == 2);
  CHECK(stored["tasks"]["captions"]["samples"] == 12);
  const Ended unknown = mmtrain(dir, {"eval", "--from", run, "--data", data, "--task", "vqa"});
  CHECK(unknown.status.code == 2);
  CHECK(unknown.output.find("--task vqa: expected names, perplexity") != std::string::npos);
  const Ended without = mmtrain(dir, {"eval", "--from", run, "--data", data, "--task", "chair"});
  CHECK(without.status.code == 65);
  CHECK(without.output.find("--objects FILE") != std::string::npos);
}

TEST_CASE("mmtrain eval: figures of another call and another set stay in eval.json") {
  TempDir dir;
  const std::string run = write_run(dir, "run", "1e-2"), data = (dir / "data").string(),
                    other = (dir / "other").string();
  data::test::write_jsonl(dir / "other.jsonl", data::test::good_rows(4));
  data::pack_dataset(data::test::toy_options(dir / "other.jsonl"), {.output = other});
  const auto eval = [&](const std::string& set, const std::string& task) {
    REQUIRE(mmtrain(dir, {"eval", "--from", run, "--data", set, "--task", task}).status.ok());
  };
  eval(data, "perplexity");
  eval(other, "perplexity");
  eval(data, "captions");
  const Json sets = read_json_file(dir / "run" / "eval.json")["sets"];
  CHECK(sets[data]["perplexity"]["samples"] == 12);
  CHECK(sets[other]["perplexity"]["samples"] == 4);
  CHECK(sets[data]["captions"]["samples"] == 12);
  const Ended page = mmtrain(dir, {"report", run, run, "--out", (dir / "both.html").string()});
  CHECK(page.status.ok());
  const std::string html = read_file(dir / "both.html");
  CHECK(html.find("captions: cider_d") != std::string::npos);
  CHECK(html.find("perplexity: loss") != std::string::npos);
}

TEST_CASE("mmtrain eval: a Hugging Face directory is scored as a run is, and stays as it is") {
  TempDir dir;
  const std::filesystem::path golden = MM_TEST_DATA "/oracles/llava_caption";
  const std::filesystem::path model = dir / "model";
  std::filesystem::copy(golden, model);
  data::test::write_jsonl(dir / "in.jsonl", data::test::good_rows(6));
  data::PackOptions options = data::test::toy_options(dir / "in.jsonl");
  options.tokenizer = model / "tokenizer.json";
  options.chat_template = "vicuna_v1";
  options.pictures.side = 28;
  options.pictures.patch = 7;
  options.max_length = 512;
  data::pack_dataset(options, {.output = dir / "data"});
  const auto before = data::test::contents(model);
  const std::string file = (dir / "answers.jsonl").string();
  const Ended ended = mmtrain(
      dir, {"eval", "--from", model.string(), "--data", (dir / "data").string(), "--task",
            "names,perplexity,captions,retrieval", "--max-new-tokens", "4", "--answers", file});
  CAPTURE(ended.output);
  CHECK(ended.status.ok());
  CHECK(ended.output.find("perplexity   samples 6") != std::string::npos);
  CHECK(ended.output.find("trained, blank picture") != std::string::npos);
  CHECK(ended.output.find("untrained") == std::string::npos);
  CHECK(parse_json(read_file(file).substr(0, read_file(file).find('\n')), "answer")["model_id"] ==
        "model");
  CHECK(data::test::contents(model) == before);
  data::pack_dataset(data::test::toy_options(dir / "in.jsonl"), {.output = dir / "toy"});
  const Ended other =
      mmtrain(dir, {"eval", "--from", model.string(), "--data", (dir / "toy").string()});
  CHECK(other.status.code == 2);
  CHECK(other.output.find("expected its tokenizer.json") != std::string::npos);
}

TEST_CASE("mmtrain report of several runs: one page beside them, --sheet is for one") {
  TempDir dir;
  const std::string one = write_run(dir, "one", "1e-2"), two = write_run(dir, "two", "2e-2"),
                    page = (dir / "both.html").string();
  const Ended both = mmtrain(dir, {"report", one, two, "--out", page});
  CHECK(both.status.ok());
  CHECK(both.output == page + "\n");
  const std::string html = read_file(page);
  CHECK(html.find("stage.0.lr.language") != std::string::npos);
  CHECK(html.find("stage.0.lr.vision") == std::string::npos);
  CHECK(mmtrain(dir, {"report", one, two, "--sheet", "x.svg"}).status.code == 2);
}
