#include "lib/run/run_comparison.h"

#include <doctest/doctest.h>

using namespace mm::run;

namespace {

RunReport run_of(const std::string& title, double loss, const std::string& recipe) {
  RunReport run{.title = title, .recipe = recipe};
  for (int i = 1; i <= 20; ++i) {
    StepRecord step{.step = i, .stage = "all", .loss = loss + 1.0 / i};
    if (i % 2 == 0) step.tokens_s = 100;
    run.steps.push_back(step);
  }
  return run;
}

}  // namespace

TEST_CASE("comparison: figures, curves and differing keys of several runs on one page") {
  const std::vector<RunReport> runs{run_of("runs/<a>", 1, "[run]\nseed = 1\n"),
                                    run_of("runs/b", 2, "[run]\nseed = 2\n")};
  const std::string page = render_comparison(runs);
  CHECK(page.find("http") == std::string::npos);
  CHECK(page.find("runs/&lt;a&gt;") != std::string::npos);
  CHECK(page.find("runs/<a>") == std::string::npos);
  CHECK(page.find("2.0500") != std::string::npos);  // the last loss of b
  CHECK(page.find("<td>100</td>") != std::string::npos);
  CHECK(page.find("run.seed") != std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("recipe differences: by table and number of stage, absent values are empty") {
  const std::string first =
      "[run]\nseed = 1\nlog_every = 10\n[[stage]]\nname = \"a\"\n[stage.lr]\nlanguage = 0.1\n"
      "[[stage]]\nname = \"b\"\n[stage.lr]\nlanguage = 0.2\n";
  std::string second = first;
  second.replace(second.find("0.2"), 3, "0.3");
  second += "vision = 0.5\n";
  const auto all = recipe_differences(std::vector<std::string>{first, second});
  REQUIRE(all.size() == 2);
  CHECK(all[0].key == "stage.1.lr.language");
  CHECK(all[0].values == std::vector<std::string>{"0.2", "0.3"});
  CHECK(all[1].key == "stage.1.lr.vision");
  CHECK(all[1].values == std::vector<std::string>{"", "0.5"});
  CHECK(recipe_differences(std::vector<std::string>{first, first}).empty());
}
