#include <fmt/format.h>

#include "apps/mmtrain/verbs.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/answer_sheet.h"
#include "lib/run/run_comparison.h"
#include "lib/run/run_report.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::vector<std::string> runs;
  std::string out, sheet;
  size_t pictures = 18;
};

int compare(const Options& options) {
  if (!options.sheet.empty())
    throw UsageError("--sheet draws one run; {} are given", options.runs.size());
  std::vector<run::RunReport> reports;
  for (const std::string& run : options.runs) {
    reports.push_back(run::load_report(run));
    reports.back().title = run;
  }
  const std::filesystem::path out = options.out.empty() ? "comparison.html" : options.out;
  write_file_atomic(out, run::render_comparison(reports));
  fmt::print("{}\n", out.string());
  return 0;
}

int report(const Options& options) {
  if (options.runs.size() > 1) return compare(options);
  const std::filesystem::path run = options.runs.front();
  const std::filesystem::path out =
      options.out.empty() ? run / "report.html" : std::filesystem::path(options.out);
  const run::RunReport report = run::load_report(run);
  if (!options.sheet.empty()) {
    if (!report.evaluation)
      throw DataError(
          "{}: no eval.json in it, so there is no sheet to draw; run mmtrain eval first",
          run.string());
    write_file_atomic(options.sheet, run::draw_answer_sheet(*report.evaluation, options.pictures));
  }
  write_file_atomic(out, run::render_report(report));
  fmt::print("{}\n", out.string());
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("report",
                                      "Writes RUN/report.html: one page with loss curves, held-out "
                                      "pictures, throughput and data wait.");
  auto options = std::make_shared<Options>();
  verb->add_option("run", options->runs, "run directory; several are compared")->required();
  verb->add_option("--out", options->out,
                   "file to write (default: RUN/report.html; of several runs: comparison.html)");
  verb->add_option("--sheet", options->sheet,
                   "also draw held-out pictures with the model's names as an SVG file");
  verb->add_option("--pictures", options->pictures, "pictures on the sheet")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  mmtrain report runs/quickstart\n"
      "  mmtrain report runs/baseline runs/higher-lr --out comparison.html\n"
      "  mmtrain report runs/quickstart --out quickstart.html\n"
      "  mmtrain report runs/quickstart --sheet held-out.svg --pictures 12");
  verb->callback([options, &action] { action = [options] { return report(*options); }; });
}

}  // namespace mm::mmtrain
