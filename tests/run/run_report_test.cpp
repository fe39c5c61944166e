#include "lib/run/run_report.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

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

TEST_CASE("load_report: a directory without a run in it is refused by name") {
  CHECK_THROWS_AS(load_report("/nonexistent-run"), mm::DataError);
}
