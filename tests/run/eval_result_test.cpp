#include "lib/run/eval_result.h"

#include <doctest/doctest.h>

using namespace mm::run;

namespace {
EvalResult sample() {
  EvalResult result{.data = "heldout", .step = 12};
  result.rows = {{"trained", {2, 0.5, 0.75, 0.5, 1, 1}}, {"untrained", {2, 0, 0.1, 0, 0, 0.5}}};
  result.pictures = {{"a", {"red apple", "red apple", 0}, "data:image/png;base64,AA=="},
                     {"b", {"blue car", "blue cat", 3}, ""}};
  return result;
}
}  // namespace

TEST_CASE("EvalResult: JSON there and back") {
  EvalResult filed = sample();
  filed.file_by_set();
  const EvalResult back = EvalResult::from_json(filed.to_json());
  CHECK(back.to_json() == filed.to_json());
  CHECK(back.pictures[1].outcome.rank == 3);
}

TEST_CASE("EvalResult: the table says right or wrong, and how many rows it left out") {
  const std::string table = sample().table(1);
  CHECK(table.find("right   red apple") != std::string::npos);
  CHECK(table.find("blue cat") == std::string::npos);
  CHECK(table.find("... and 1 more") != std::string::npos);
  CHECK(table.find("50.0 %") != std::string::npos);
}

TEST_CASE("eval result: one task on two sets, and the files of before there were sets, are kept") {
  EvalResult coco{.data = "coco", .step = 7, .tasks = {{"captions", {{"cider", 0.5}}}}};
  coco.rows = {{"trained", {2, 0.5}}};
  const mm::Json of_before = coco.to_json();
  CHECK(!of_before.contains("sets"));
  coco.file_by_set();
  CHECK(EvalResult::from_json(of_before).sets == coco.sets);
  EvalResult flickr{.data = "flickr", .step = 7, .tasks = {{"captions", {{"cider", 0.75}}}}};
  flickr.file_by_set();
  flickr.keep(EvalResult::from_json(coco.to_json()));
  CHECK(flickr.tasks["captions"]["cider"] == 0.75);
  CHECK(flickr.sets["coco"]["captions"]["cider"] == 0.5);
  CHECK(flickr.sets["coco"]["names"]["trained"]["exact_match"] == 0.5);
  CHECK(flickr.sets["flickr"]["captions"]["cider"] == 0.75);
  EvalResult again{.data = "coco", .step = 7, .tasks = {{"captions", {{"cider", 0.25}}}}};
  again.file_by_set();
  again.keep(flickr);
  CHECK(again.sets["coco"]["captions"]["cider"] == 0.25);
  CHECK(again.sets["flickr"].size() == 1);
  EvalResult newer{.data = "coco", .step = 8};
  newer.keep(flickr);
  CHECK(newer.sets.empty());
}

TEST_CASE("eval result: keeps another kind of evaluation of the same checkpoint, no older one") {
  EvalResult judged{.data = "names", .step = 7, .rows = {{"drawn", {}}}};
  judged.pictures.push_back({"key", {}, "", ""});
  judged.tasks["frechet"] = {{"drawn", 2.0}};
  EvalResult measured{.data = "pictures", .step = 7};
  measured.tasks["validation_loss"] = {{"mean", 0.5}};
  EvalResult both = measured;
  both.keep(judged);
  CHECK(both.data == "names");
  CHECK(both.rows.size() == 1);
  CHECK(both.pictures.size() == 1);
  CHECK(both.tasks.size() == 2);
  EvalResult again = judged;
  again.keep(measured);
  CHECK(again.data == "names");
  CHECK(again.tasks.size() == 2);
  EvalResult newer = measured;
  newer.step = 8;
  newer.keep(judged);
  CHECK(newer.rows.empty());
  CHECK(newer.tasks.size() == 1);
  EvalResult replaced{.data = "pictures", .step = 7};
  replaced.tasks["validation_loss"] = {{"mean", 0.25}};
  replaced.keep(both);
  CHECK(replaced.tasks["validation_loss"]["mean"] == 0.25);
}
