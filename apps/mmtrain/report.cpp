#include <fmt/format.h>

#include "apps/mmtrain/verbs.h"
#include "lib/base/file.h"
#include "lib/run/run_report.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string run, out;
};
}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("report",
                                      "Writes RUN/report.html: one page with loss curves, held-out "
                                      "pictures, throughput and data wait.");
  auto options = std::make_shared<Options>();
  verb->add_option("run", options->run, "run directory")->required();
  verb->add_option("--out", options->out, "file to write (default: RUN/report.html)");
  verb->footer(
      "Examples:\n"
      "  mmtrain report runs/quickstart\n"
      "  mmtrain report runs/quickstart --out quickstart.html");
  verb->callback([options, &action] {
    action = [options] {
      const std::filesystem::path run = options->run;
      const std::filesystem::path out =
          options->out.empty() ? run / "report.html" : std::filesystem::path(options->out);
      write_file_atomic(out, run::render_report(run::load_report(run)));
      fmt::print("{}\n", out.string());
      return 0;
    };
  });
}

}  // namespace mm::mmtrain
