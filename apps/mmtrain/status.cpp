#include "lib/run/status.h"

#include <fmt/format.h>

#include "apps/mmtrain/verbs.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string run;
  bool json = false;
};
}  // namespace

void add_status(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "status", "Says where a run stands: step, loss, speed, last checkpoint, verdict.");
  auto options = std::make_shared<Options>();
  verb->add_option("run", options->run, "run directory")->required();
  verb->add_flag("--json", options->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmtrain status runs/quickstart\n"
      "  mmtrain status runs/quickstart --json");
  verb->callback([options, &action] {
    action = [options] {
      const run::RunStatus status = run::read_status(options->run);
      fmt::print("{}\n", options->json ? status.to_json().dump(2) : status.text());
      return 0;
    };
  });
}

}  // namespace mm::mmtrain
