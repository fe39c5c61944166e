#include <fmt/format.h>

#include <memory>

#include "apps/mmprobe/verbs.h"
#include "lib/base/env.h"
#include "lib/base/exit_code.h"
#include "lib/health/baseline.h"
#include "lib/health/node_report.h"

namespace mm::mmprobe {
namespace {

struct Options {
  health::NodeOptions node;
  std::string kind, kmsg, learn;
  std::optional<double> min_free_gib;
  bool json = false;
};

int run(const Options& options) {
  health::NodeOptions node = options.node;
  node.expected = health::load_expectation(options.kind);
  if (options.min_free_gib) node.expected.storage.free_gib_min = *options.min_free_gib;
  if (!options.kmsg.empty()) node.kmsg = options.kmsg;
  if (const auto library = env::get("MMPROBE_NVML")) node.nvml_library = *library;
  if (const auto library = env::get("MMPROBE_NCCL")) node.nccl_library = *library;
  if (!node.paths.empty()) node.full_tests.directory = node.paths.front();
  const health::NodeReport report = health::read_node(node);
  if (!options.learn.empty()) health::learn_baseline(report, options.learn);
  if (options.json) {
    fmt::print("{}\n", health::node_json(report).dump(2));
  } else {
    fmt::print("{}", health::node_text(report));
  }
  return static_cast<int>(report.healthy() ? ExitCode::kDone : ExitCode::kUnhealthy);
}

void add_reading(CLI::App* verb, Options& options) {
  verb->add_option("--path", options.node.paths,
                   "path to probe, may be given again; default: the working directory")
      ->group("What to read");
  verb->add_option("--disk-deadline-ms", options.node.disk_deadline_ms,
                   "a path or mount that does not answer in time is bad")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000))
      ->group("What to read");
  verb->add_option("--sysfs-root", options.node.root,
                   "read /proc and /sys below this directory instead")
      ->capture_default_str()
      ->group("What to read");
  verb->add_option("--kmsg", options.kmsg, "kernel log: /dev/kmsg, or a file of it or of dmesg")
      ->group("What to read");
  verb->add_flag("--full", options.node.full,
                 "also measure processor, memory and disk, within three minutes")
      ->group("What to read");
}

void add_judging(CLI::App* verb, Options& options) {
  std::string names;
  for (const std::string& name : health::expectation_names()) names += " " + name;
  verb->add_option("--sku", options.kind, "kind of node: a TOML file, or one of:" + names)
      ->group("How to judge");
  verb->add_option("--baseline", options.node.baseline, "compare with what --learn wrote")
      ->check(CLI::ExistingFile)
      ->group("How to judge");
  verb->add_option("--learn", options.learn, "write what was read as a baseline")
      ->group("How to judge");
  verb->add_option("--min-free-gib", options.min_free_gib, "a path with less room is bad")
      ->check(CLI::NonNegativeNumber)
      ->group("How to judge");
  verb->add_flag("--busy-ok", options.node.busy_ok,
                 "a job may be running: GPU memory in use is no fault")
      ->group("How to judge");
  verb->add_option("--xid-table", options.node.xid_table, "another table of Xid actions, TOML")
      ->check(CLI::ExistingFile)
      ->group("How to judge");
  verb->add_flag("--json", options.json, "one JSON object instead of text");
}

}  // namespace

void add_node(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "node", "Reads everything readable of this node, judges it and says what to do.");
  auto options = std::make_shared<Options>();
  add_reading(verb, *options);
  add_judging(verb, *options);
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
