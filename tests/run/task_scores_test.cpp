#include "lib/run/task_scores.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using namespace mm::run;

namespace {

std::vector<AnsweredSample> answered(
    std::initializer_list<std::pair<const char*, const char*>> rows) {
  std::vector<AnsweredSample> samples;
  for (const auto& [truth, answer] : rows)
    samples.push_back({std::to_string(samples.size()), "q", truth, answer});
  return samples;
}

}  // namespace

TEST_CASE("caption text: lower case, no punctuation, one blank between words") {
  CHECK(caption_text(" A cat, on\n the MAT. ") == "a cat on the mat");
  CHECK(caption_text("don't re-do (it)!") == "don't re-do it");
  CHECK(caption_text("Ein Käse") == "ein käse");
  CHECK(caption_text("...") == "");
}

TEST_CASE("tasks: names go both ways") {
  for (const std::string& name : task_names()) {
    REQUIRE(task_from_name(name));
    CHECK(task_name(*task_from_name(name)) == name);
  }
  CHECK(!task_from_name("vqa"));
}

TEST_CASE("yes-no: truths that say neither are left out and counted") {
  const auto samples =
      answered({{"Yes", "Yes, it is."}, {"no.", "Yes"}, {"No", "no"}, {"a cat", "yes"}});
  const mm::Json s = score_task(EvalTask::kYesNo, samples, {});
  CHECK(s["samples"] == 3);
  CHECK(s["without_truth"] == 1);
  CHECK(s["accuracy"] == doctest::Approx(2.0 / 3));
  CHECK(s["yes_ratio"] == doctest::Approx(2.0 / 3));
  CHECK_THROWS_WITH_AS(score_task(EvalTask::kYesNo, answered({{"a cat", "yes"}}), {}),
                       doctest::Contains("says yes or no"), mm::DataError);
}

TEST_CASE("counting and spatial answers are read as lib/score reads them") {
  const mm::Json count =
      score_task(EvalTask::kCounting, answered({{"Three", "there are 3"}, {"2", "many"}}), {});
  CHECK(count["accuracy"] == 0.5);
  CHECK(count["unparsed"] == 1);
  const mm::Json place =
      score_task(EvalTask::kSpatial, answered({{"left", "on the left"}, {"above", "below"}}), {});
  CHECK(place["accuracy"] == 0.5);
}

TEST_CASE("captions: own answers are references where no others are given") {
  const auto samples = answered({{"A black cat sits.", "a black cat sits"},
                                 {"A dog runs in the park.", "a bird flies over a house"}});
  const mm::Json own = score_task(EvalTask::kCaptions, samples, {});
  CHECK(own["samples"] == 2);
  CHECK(own["rouge_l"].get<double>() > 0.5);
  TaskReferences references;
  references.captions["1"] = {"a bird flies over a house", "birds"};
  CHECK(score_task(EvalTask::kCaptions, samples, references)["bleu_4"] == doctest::Approx(1));
}

TEST_CASE("chair: only samples whose objects are known, and at least one") {
  TaskReferences references;
  references.synonyms = {{"cat", {"cat", "kitten"}}, {"dog", {"dog"}}};
  references.objects = {{"0", {"cat"}}};
  const auto samples = answered({{"", "A kitten and a dog."}, {"", "a dog"}});
  const mm::Json s = score_task(EvalTask::kChair, samples, references);
  CHECK(s["chair_i"] == 0.5);
  CHECK(s["chair_s"] == 1);
  CHECK(s["without_truth"] == 1);
  CHECK_THROWS_WITH_AS(score_task(EvalTask::kChair, samples, {}), doctest::Contains("--objects"),
                       mm::DataError);
}

TEST_CASE("answer file: one line a sample in LLaVA's form, whole numbers as numbers") {
  const mm::test::TempDir dir;
  std::vector<AnsweredSample> samples = answered({{"a", "first"}, {"b", "second \"quoted\""}});
  samples[1].key = "000012";
  write_answers(dir / "a.jsonl", samples, "run-step7");
  const std::string text = mm::read_file(dir / "a.jsonl");
  const mm::Json first = mm::parse_json(text.substr(0, text.find('\n')), "first");
  CHECK(first["question_id"] == 0);
  CHECK(first["text"] == "first");
  CHECK(first["model_id"] == "run-step7");
  CHECK(first["answer_id"].get<std::string>().size() == 16);
  const mm::Json second = mm::parse_json(text.substr(text.find('\n') + 1), "second");
  CHECK(second["question_id"] == "000012");
}

TEST_CASE("reference files: keys in their spellings, faults with file and line") {
  const mm::test::TempDir dir;
  TaskReferences references;
  mm::write_file_atomic(dir / "c.jsonl",
                        "{\"image_id\": 7, \"caption\": \"a\"}\n\n{\"key\": \"7\", \"captions\": "
                        "[\"b\", \"c\"]}\n");
  read_captions(dir / "c.jsonl", references);
  CHECK(references.captions["7"] == std::vector<std::string>{"a", "b", "c"});
  mm::write_file_atomic(dir / "bad.jsonl",
                        "{\"key\": \"7\", \"captions\": [\"b\"]}\n{\"key\": 1.5}\n");
  CHECK_THROWS_WITH_AS(read_captions(dir / "bad.jsonl", references), doctest::Contains("line 2"),
                       mm::DataError);
  mm::write_file_atomic(dir / "o.json",
                        R"({"synonyms": {"cat": ["cat"]}, "objects": {"1": ["cat"]}})");
  read_objects(dir / "o.json", references);
  CHECK(references.objects.at("1").count("cat") == 1);
  mm::write_file_atomic(dir / "o2.json", R"({"synonyms": {"cat": 3}, "objects": {}})");
  CHECK_THROWS_WITH_AS(read_objects(dir / "o2.json", references), doctest::Contains("synonyms.cat"),
                       mm::DataError);
}
