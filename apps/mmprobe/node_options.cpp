#include "apps/mmprobe/node_options.h"

#include "apps/mmprobe/engine_library.h"
#include "apps/mmprobe/some_bytes.h"
#include "lib/base/env.h"

namespace mm::mmprobe {
namespace {

constexpr const char* kMeasureSymbol = "mm_probe_engine_devices";

void add_reading(CLI::App* verb, NodeFlags& flags) {
  const char* group = "What to read";
  verb->add_option("--path", flags.node.paths,
                   "path to probe, may be given again; default: the working directory")
      ->group(group);
  verb->add_option("--disk-deadline-ms", flags.node.disk_deadline_ms,
                   "a path or mount that does not answer in time is bad")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000))
      ->group(group);
  verb->add_option("--sysfs-root", flags.node.root,
                   "read /proc and /sys below this directory instead")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str()
      ->group(group);
  verb->add_option("--kmsg", flags.kmsg, "kernel log: /dev/kmsg, or a file of it or of dmesg")
      ->group(group);
  auto& full = flags.node.full_tests;
  verb->add_option("--full-seconds", full.seconds, "of each rate that --full measures")
      ->check(CLI::Range(0.01, 20.0))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--full-memory", full.memory_bytes,
                   "to test; default: a quarter of what is free, at most 64 GiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->group(group);
  verb->add_option("--full-disk", full.disk_bytes, "to write and read below the first --path")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->capture_default_str()
      ->group(group);
  verb->add_flag("--full", flags.node.full,
                 "also measure processor, memory, disk and GPUs, within three minutes")
      ->group(group);
}

void add_judging(CLI::App* verb, NodeFlags& flags) {
  const char* group = "How to judge";
  std::string names;
  for (const std::string& name : health::expectation_names()) names += " " + name;
  verb->add_option("--sku", flags.kind, "kind of node: a TOML file, or one of:" + names)
      ->group(group);
  verb->add_option("--baseline", flags.node.baseline, "compare with what node --learn wrote")
      ->check(CLI::ExistingFile)
      ->group(group);
  verb->add_option("--min-free-gib", flags.min_free_gib, "a path with less room is bad")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  verb->add_flag("--busy-ok", flags.node.busy_ok,
                 "a job may be running: GPU memory in use is no fault")
      ->group(group);
  verb->add_option("--xid-table", flags.node.xid_table, "another table of Xid actions, TOML")
      ->check(CLI::ExistingFile)
      ->group(group);
}

// CUDA comes with LibTorch, which the engine has.
health::DeviceTests measure_devices(double seconds) {
  if (!std::filesystem::exists(engine_path()))
    return {.problem = "needs LibTorch, which this build has not"};
  const auto measure = [seconds] {
    using Take = void (*)(void* context, const char* text);
    using Measure = void (*)(double seconds, Take take, void* context);
    const auto run = reinterpret_cast<Measure>(engine_symbol(kMeasureSymbol));
    std::string json;
    run(
        seconds, [](void* to, const char* text) { *static_cast<std::string*>(to) = text; }, &json);
    return json;
  };
  return health::device_tests_loaded([] { engine_symbol(kMeasureSymbol); }, measure, {});
}

}  // namespace

void add_node_flags(CLI::App* verb, NodeFlags& flags) {
  add_reading(verb, flags);
  add_judging(verb, flags);
}

health::NodeOptions resolve(const NodeFlags& flags) {
  health::NodeOptions node = flags.node;
  node.expected = health::load_expectation(flags.kind);
  if (flags.min_free_gib) node.expected.storage.free_gib_min = *flags.min_free_gib;
  if (!flags.kmsg.empty()) node.kmsg = flags.kmsg;
  if (const auto library = env::get("MMPROBE_NVML")) node.nvml_library = *library;
  if (const auto library = env::get("MMPROBE_NCCL")) node.nccl_library = *library;
  if (!node.paths.empty()) node.full_tests.directory = node.paths.front();
  node.full_tests.measure_devices = [seconds = node.full_tests.seconds] {
    return measure_devices(seconds);
  };
  return node;
}

}  // namespace mm::mmprobe
