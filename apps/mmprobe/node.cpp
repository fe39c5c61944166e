#include <fmt/format.h>

#include <memory>

#include "apps/mmprobe/node_options.h"
#include "apps/mmprobe/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/health/baseline.h"

namespace mm::mmprobe {
namespace {

struct Options {
  NodeFlags flags;
  std::string learn;
  bool json = false;
};

int run(const Options& options) {
  const health::NodeReport report = health::read_node(resolve(options.flags));
  if (!options.learn.empty()) health::learn_baseline(report, options.learn);
  if (options.json) {
    fmt::print("{}\n", health::node_json(report).dump(2));
  } else {
    fmt::print("{}", health::node_text(report));
  }
  return static_cast<int>(report.healthy() ? ExitCode::kDone : ExitCode::kUnhealthy);
}

}  // namespace

void add_node(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "node", "Reads everything readable of this node, judges it and says what to do.");
  auto options = std::make_shared<Options>();
  add_node_flags(verb, options->flags);
  verb->add_option("--learn", options->learn, "write what was read as a baseline");
  verb->add_flag("--json", options->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmprobe node --sku h100-8 --path /store --path /scratch\n"
      "  mmprobe node --full --learn /store/baseline.json\n"
      "  mmprobe node --busy-ok --sku h100-8        (as Slurm's HealthCheckProgram)\n"
      "MMPROBE_NVML and MMPROBE_NCCL name other libraries. Changes nothing, needs no root, ends "
      "within 10 s without --full.\n"
      "Exit codes: 0 nothing bad was found, 69 unhealthy.");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mm::mmprobe
