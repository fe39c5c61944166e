#include "lib/run/run_report.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using namespace mm::run;

TEST_CASE("render_report: one page, no outside reference, hostile names escaped") {
  RunReport report{.title = "run <x>", .recipe = "a = \"<b>\""};
  for (int i = 1; i <= 20; ++i)
    report.steps.push_back({.step = i, .stage = i < 10 ? "warmup" : "all", .loss = 1.0 / i});
  report.evaluation =
      EvalResult{.rows = {{"trained", {1, 1, 1, 1, 1, 1}}},
                 .pictures = {{"k", {"<i>cat", "<i>cat", 0}, "data:image/png;base64,AA=="}}};
  const std::string page = render_report(report);
  CHECK(page.find("http") == std::string::npos);
  CHECK(page.find("<i>cat") == std::string::npos);
  CHECK(page.find("run &lt;x&gt;") != std::string::npos);
  CHECK(page.find("card right") != std::string::npos);
  CHECK(page.find("warmup") != std::string::npos);
}

TEST_CASE("render_report: an autoencoder's pictures stand beside its reconstructions") {
  EvalResult evaluation{.tasks = {{"reconstruction", {{"psnr", 21.5}}}}};
  evaluation.rebuilt = {{"<k>", 21.46, "data:real", "data:rebuilt"}};
  const EvalResult read = EvalResult::from_json(evaluation.to_json());
  REQUIRE(read.rebuilt.size() == 1);
  const std::string page = render_report({.title = "vae", .evaluation = read});
  const size_t real = page.find("src='data:real'"), rebuilt = page.find("src='data:rebuilt'");
  CHECK(real < rebuilt);
  CHECK(rebuilt != std::string::npos);
  CHECK(page.find("&lt;k&gt;") != std::string::npos);
  CHECK(page.find("21.5 dB") != std::string::npos);
  CHECK(page.find("psnr 21.5000") != std::string::npos);
}

TEST_CASE("render_report: metrics of some steps are drawn through those steps") {
  RunReport report{.title = "sparse"};
  for (int i = 1; i <= 20; ++i) {
    StepRecord step{.step = i, .stage = "all", .loss = i % 2 == 0 ? 1.0 / i : kUnknown};
    if (i % 5 == 0) step.tokens_s = 100.0 + i;
    report.steps.push_back(step);
  }
  std::string page = render_report(report);
  for (const auto& [title, lines] :
       {std::pair{"loss per target token", 9}, std::pair{"tokens per second", 3}}) {
    CAPTURE(title);
    page.erase(0, page.find(title));
    const size_t begin = page.find("<path d='");
    const std::string path = page.substr(begin, page.find(" fill", begin) - begin);
    CHECK(std::count(path.begin(), path.end(), 'M') == 1);
    CHECK(std::count(path.begin(), path.end(), 'L') == lines);
  }
}

TEST_CASE("load_report: charts of a diffusion run speak of pictures; all its sets are shown") {
  const mm::test::TempDir dir;
  mm::write_file_atomic(dir / "recipe.toml", "[model]\nfamily = \"dit\"\n");
  mm::write_file_atomic(dir / "metrics.jsonl", "{\"step\": 1, \"loss\": 2.5, \"images\": 3}\n");
  EvalResult result{.data = "sets/a", .step = 1, .tasks = {{"validation_loss", {{"mean", 0.5}}}}};
  result.file_by_set();
  mm::write_file_atomic(dir / "eval.json", result.to_json().dump());
  const std::string page = render_report(load_report(dir.path()));
  CHECK(page.find("loss per picture") != std::string::npos);
  CHECK(page.find("pictures per second") != std::string::npos);
  CHECK(page.find("tokens per second") == std::string::npos);
  CHECK(page.find("target token") == std::string::npos);
  CHECK(page.find("<h3>sets/a</h3><pre>validation_loss  mean 0.5000") != std::string::npos);
}

TEST_CASE("load_report: an eval.json of another shape is named") {
  const mm::test::TempDir dir;
  for (const char* text : {"[1]", R"({"step": "one"})", R"({"tasks": {"captions": 3}})",
                           R"({"scores": [1]})", R"({"pictures": [{"rank": "first"}]})"}) {
    CAPTURE(text);
    mm::write_file_atomic(dir / "eval.json", text);
    CHECK_THROWS_WITH_AS((void)load_report(dir.path()),
                         doctest::Contains("eval.json: no result of mmtrain eval"), mm::DataError);
  }
}

TEST_CASE("load_report: a directory without a run in it is refused by name") {
  CHECK_THROWS_AS(load_report("/nonexistent-run"), mm::DataError);
}
