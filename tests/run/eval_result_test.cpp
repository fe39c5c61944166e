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
  const EvalResult back = EvalResult::from_json(sample().to_json());
  CHECK(back.to_json() == sample().to_json());
  CHECK(back.pictures[1].outcome.rank == 3);
}

TEST_CASE("EvalResult: the table says right or wrong, and how many rows it left out") {
  const std::string table = sample().table(1);
  CHECK(table.find("right   red apple") != std::string::npos);
  CHECK(table.find("blue cat") == std::string::npos);
  CHECK(table.find("... and 1 more") != std::string::npos);
  CHECK(table.find("50.0 %") != std::string::npos);
}
