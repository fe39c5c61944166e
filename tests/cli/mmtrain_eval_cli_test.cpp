// What users see of mmtrain eval's tasks and of a report of several runs.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/mmtrain_process.h"
#include "tests/data/toy_source.h"

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
  write_file_atomic(dir / "recipe.toml", R"(
[model.vision]
hidden = 8
layers = 2
heads = 2
patch = 4
image_side = 8
[model.language]
hidden = 16
layers = 2
heads = 4
kv_heads = 2
mlp = 24
[[stage]]
name = "all"
data = "data"
steps = 2
sequence_length = 64
packs_per_step = 2
lr = { vision = 1e-2, projector = 1e-2, language = 1e-2 }
)");
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
