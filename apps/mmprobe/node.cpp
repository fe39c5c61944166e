#include <fmt/format.h>

#include <memory>

#include "apps/mmprobe/verbs.h"
#include "lib/base/env.h"
#include "lib/base/exit_code.h"
#include "lib/health/node_report.h"

namespace mm::mmprobe {
namespace {

struct Options {
  health::NodeOptions node;
  bool json = false;
};

int run(const Options& options) {
  health::NodeOptions node = options.node;
  if (const auto library = env::get("MMPROBE_NVML")) node.nvml_library = *library;
  const health::NodeReport report = health::read_node(node);
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
      "node", "Reads CPU, memory, disks, network, clock and GPUs of this node; changes nothing.");
  auto options = std::make_shared<Options>();
  verb->add_option("--path", options->node.paths,
                   "disk to probe, may be given again; default: the working directory");
  verb->add_option("--min-free-bytes", options->node.min_free_bytes, "a disk with less room is bad")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false));
  verb->add_option("--disk-deadline-ms", options->node.disk_deadline_ms,
                   "a disk that does not answer in time is bad")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  verb->add_option("--sysfs-root", options->node.root,
                   "read /proc and /sys below this directory instead")
      ->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmprobe node --path /store --path /scratch --min-free-bytes 100GiB\n"
      "  mmprobe node --json\n"
      "MMPROBE_NVML names another NVML library.");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mm::mmprobe
