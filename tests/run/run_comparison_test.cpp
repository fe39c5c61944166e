#include "lib/run/run_comparison.h"

#include <doctest/doctest.h>

#include <algorithm>

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

TEST_CASE("comparison: every figure of every task stands under its data set, beside the others'") {
  std::vector<RunReport> runs{run_of("a", 1, ""), run_of("b", 2, ""), run_of("c", 3, "")};
  EvalResult first{.data = "sets/<coco>", .step = 20};
  first.tasks = {{"captions", {{"cider", 0.75}}}, {"perplexity", {{"perplexity", 3.5}}}};
  first.file_by_set();
  EvalResult second{.data = "sets/pope", .step = 20, .rows = {{"trained", {2, 0.5, 0.25}}}};
  second.tasks = {{"yes-no", {{"f1", 0.875}, {"samples", 9}}}};
  second.file_by_set();
  EvalResult both = second;
  both.keep(first);
  runs[0].evaluation = first;
  runs[1].evaluation = both;
  const std::string page = render_comparison(runs);
  const auto has = [&](const char* text) { return page.find(text) != std::string::npos; };
  CHECK(has("<h3>sets/&lt;coco&gt;</h3>"));
  CHECK(has("<th>captions: cider</th><td>0.7500</td><td>0.7500</td><td></td>"));
  CHECK(has("<th>perplexity: perplexity</th><td>3.5000</td><td>3.5000</td><td></td>"));
  CHECK(has("<th>yes-no: f1</th><td></td><td>0.8750</td><td></td>"));
  CHECK(has("<th>names: trained: word_f1</th><td></td><td>0.2500</td><td></td>"));
}

TEST_CASE("comparison: a metric of some steps is a line through those, of one step a dot") {
  std::vector<RunReport> runs{run_of("a", 1, ""), run_of("b", 2, "")};
  for (StepRecord& step : runs[1].steps) {
    if (step.step != 6) step.tokens_s = kUnknown;
  }
  std::string page = render_comparison(runs);
  page.erase(0, page.find("tokens per second"));
  const size_t first = page.find("<path d='"), second = page.find("<path d='", first + 1);
  const std::string line = page.substr(first, page.find(" fill", first) - first);
  CHECK(std::count(line.begin(), line.end(), 'M') == 1);
  CHECK(std::count(line.begin(), line.end(), 'L') == 9);
  CHECK(page.substr(second, page.find(" fill", second) - second).find("h0") != std::string::npos);
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
