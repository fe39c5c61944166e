#include "lib/health/gpu_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace mm::health {
namespace {

constexpr const char* kReset = "exclude the node; drain it for a GPU reset";

// Judges one GPU; findings carry its place.
class GpuJudge {
 public:
  GpuJudge(const GpuDevice& gpu, std::string where, const Expectation& expected,
           std::vector<Finding>& findings)
      : gpu_(gpu), where_(std::move(where)), e_(expected.gpu), findings_(findings) {}

  void judge(const GpuVerdictOptions& options) {
    if (!gpu_.problem.empty()) {
      const bool lost = gpu_.problem_code == 15;
      add(Level::kBad, "F17", lost ? "GPU is lost" : "GPU does not answer", gpu_.problem,
          "exclude the node; drain it for a restart of the machine");
      if (lost) return;
    }
    judge_memory_errors();
    judge_speed();
    judge_links();
    judge_kind();
    if (!options.busy_ok) judge_use(options.tree);
    if (options.xids != nullptr) judge_events(*options.xids);
  }

 private:
  void add(Level level, const char* code, std::string what, std::string evidence,
           std::string action) {
    findings_.push_back({.level = level,
                         .code = code,
                         .where = where_,
                         .what = std::move(what),
                         .evidence = std::move(evidence),
                         .action = std::move(action)});
  }

  void judge_memory_errors() {
    if (gpu_.ecc_uncorrected.value_or(0) > 0)
      add(Level::kBad, "F15", "uncorrected memory errors",
          fmt::format("{} since the driver loaded", *gpu_.ecc_uncorrected), kReset);
    if (gpu_.ecc_corrected.value_or(0) > static_cast<uint64_t>(e_.ecc_corrected_max))
      add(Level::kWarn, "F15", "many corrected memory errors",
          fmt::format("{} since the driver loaded, at most {} expected", *gpu_.ecc_corrected,
                      e_.ecc_corrected_max),
          "none now; it counts in the node's history");
    if (gpu_.sram_over_threshold.value_or(false))
      add(Level::kBad, "F15", "SRAM errors over the threshold", "NVML's SRAM threshold flag is set",
          "exclude the node; have the GPU replaced");
    if (gpu_.rows && gpu_.rows->failed)
      add(Level::kBad, "F15", "remapping of a memory row failed", "row remap failure flag is set",
          "exclude the node; have the GPU replaced");
    if (gpu_.rows && gpu_.rows->pending)
      add(Level::kBad, "F15", "a memory row waits to be remapped", "row remap pending flag is set",
          "a running job finishes its step and saves; then drain the node for a GPU reset");
    if (gpu_.recovery_action.value_or(0) != 0)
      add(Level::kBad, "F13", fmt::format("driver asks: {}", recovery_word(*gpu_.recovery_action)),
          fmt::format("recovery action {}", *gpu_.recovery_action),
          fmt::format("exclude the node; {}", recovery_word(*gpu_.recovery_action)));
  }

  void judge_speed() {
    const std::string slow = slowdown_text(gpu_.clock_reasons.value_or(0));
    if (!slow.empty())
      add(Level::kWarn, "F16", slow,
          fmt::format("clock reasons {:#x}, {} C, SM clock {} MHz", *gpu_.clock_reasons,
                      gpu_.temperature_c.value_or(0), gpu_.sm_clock_mhz.value_or(0)),
          "expect slow steps; check cooling and power of the node");
    if (gpu_.temperature_c.value_or(0) > static_cast<uint64_t>(e_.temperature_c_max))
      add(Level::kWarn, "F16", "hot",
          fmt::format("{} C, at most {} expected", *gpu_.temperature_c, e_.temperature_c_max),
          "check the cooling of the node");
    const auto width = e_.pcie_width         ? e_.pcie_width
                       : gpu_.pcie_max_width ? std::optional<int64_t>(*gpu_.pcie_max_width)
                                             : std::nullopt;
    if (width && gpu_.pcie_width && static_cast<int64_t>(*gpu_.pcie_width) < *width)
      add(Level::kBad, "F11", "PCIe link is narrower than expected",
          fmt::format("x{}, expected x{}", *gpu_.pcie_width, *width),
          "exclude the node; reseat the GPU");
    // An idle GPU lowers its generation by itself; what it can reach is judged.
    if (e_.pcie_generation && gpu_.pcie_max_generation &&
        static_cast<int64_t>(*gpu_.pcie_max_generation) < *e_.pcie_generation)
      add(Level::kBad, "F11", "PCIe generation is lower than expected",
          fmt::format("{}, expected {}", *gpu_.pcie_max_generation, *e_.pcie_generation),
          "exclude the node; check its firmware settings");
    if (gpu_.pcie_replays.value_or(0) > static_cast<uint64_t>(e_.pcie_replays_max))
      add(Level::kWarn, "F49", "PCIe link repeats packets",
          fmt::format("{} replays, at most {} expected", *gpu_.pcie_replays, e_.pcie_replays_max),
          "watch whether they rise; reseat the GPU");
  }

  void judge_links() {
    int64_t active = 0;
    std::string down, errors;
    for (const NvLink& link : gpu_.links) {
      active += link.active ? 1 : 0;
      if (!link.active) down += fmt::format("{}{}", down.empty() ? "link " : ", ", link.link);
      const uint64_t worst = std::max(
          {link.replays.value_or(0), link.recoveries.value_or(0), link.crc_errors.value_or(0)});
      if (link.active && worst > static_cast<uint64_t>(e_.nvlink_errors_max))
        errors += fmt::format("{}link {}: {} replays, {} recoveries, {} CRC errors",
                              errors.empty() ? "" : "; ", link.link, link.replays.value_or(0),
                              link.recoveries.value_or(0), link.crc_errors.value_or(0));
    }
    // Where the kind is not known, a GPU with some links is taken to need all it shows.
    const int64_t wanted = e_.nvlinks.value_or(active > 0 ? int64_t(gpu_.links.size()) : 0);
    if (active < wanted)
      add(Level::kBad, "F12", "NVLinks are inactive",
          fmt::format("{} of {} active{}{}", active, wanted,
                      down.empty() ? "" : "; inactive: ", down),
          "exclude the node; drain it for a GPU reset, then a check of the board");
    if (!errors.empty())
      add(Level::kWarn, "F12", "NVLink errors", errors,
          "watch whether they rise; if so exclude the node");
  }

  void judge_kind() {
    if (e_.name && !gpu_.name.starts_with(*e_.name))
      add(Level::kBad, "F51", "another kind of GPU than expected",
          fmt::format("{}, expected {}", gpu_.name, *e_.name), "exclude the node");
    if (e_.memory_gib_min && gpu_.memory_bytes < static_cast<uint64_t>(*e_.memory_gib_min) << 30)
      add(Level::kBad, "F51", "less memory than expected",
          fmt::format("{} MiB, expected {} GiB", gpu_.memory_bytes >> 20, *e_.memory_gib_min),
          "exclude the node; look for retired memory or a partitioned GPU");
  }

  void judge_use(const SystemTree* tree) {
    const auto limit = static_cast<uint64_t>(e_.memory_used_mib_max) << 20;
    if (gpu_.memory_used_bytes <= limit && gpu_.processes.empty()) return;
    std::string evidence = fmt::format("{} MiB in use", gpu_.memory_used_bytes >> 20);
    for (const GpuProcess& process : gpu_.processes) {
      std::string name;
      if (tree != nullptr)
        name = tree->text(fmt::format("/proc/{}/comm", process.pid)).value_or("");
      evidence += fmt::format(", pid {}{}{} {} MiB", process.pid, name.empty() ? "" : " ", name,
                              process.memory_bytes >> 20);
    }
    add(Level::kBad, "F46", "in use before the job", std::move(evidence),
        "end the processes left over; if none is shown, reset the GPU");
  }

  void judge_events(const XidTable& xids) {
    for (const unsigned xid : gpu_.xid_events) {
      Finding finding = judge_xid({gpu_.bus_id, static_cast<int>(xid), "event from NVML"}, xids);
      finding.where = where_;
      findings_.push_back(std::move(finding));
    }
  }

  const GpuDevice& gpu_;
  std::string where_;
  const Expectation::Gpu& e_;
  std::vector<Finding>& findings_;
};

void judge_together(const GpuReport& gpus, const Expectation& expected,
                    std::vector<Finding>& findings) {
  const auto& e = expected.gpu;
  if (e.count && static_cast<int64_t>(gpus.devices.size()) != *e.count)
    findings.push_back(
        {.level = Level::kBad,
         .code = "F51",
         .where = "GPUs",
         .what = "another number than expected",
         .evidence = fmt::format("{} found, {} expected", gpus.devices.size(), *e.count),
         .action = "exclude the node; look for a GPU that fell off the bus"});
  const auto old = [&](const char* where, const std::string& have,
                       const std::optional<std::string>& want) {
    if (!want || have.empty() || version_at_least(have, *want)) return;
    findings.push_back({.level = Level::kBad,
                        .code = "F52",
                        .where = where,
                        .what = "older than expected",
                        .evidence = fmt::format("{}, expected {}", have, *want),
                        .action = "exclude the node; update it"});
  };
  old("GPU driver", gpus.driver, e.driver_min);
  old("CUDA", gpus.cuda, e.cuda_min);
}

Finding without_answer(const GpuReport& gpus, const Expectation& expected) {
  if (gpus.hung)
    return {.level = Level::kBad,
            .code = "F17",
            .where = "GPUs",
            .what = "the driver does not answer",
            .evidence = gpus.problem,
            .action = "exclude the node; drain it for a restart of the machine"};
  if (expected.gpu.count.value_or(0) > 0)
    return {.level = Level::kBad,
            .code = "F17",
            .where = "GPUs",
            .what = "none can be asked",
            .evidence = gpus.problem,
            .action = "exclude the node; check driver and library"};
  return not_checked("GPUs", gpus.problem + " (GPUs not checked)");
}

}  // namespace

const char* recovery_word(unsigned action) {
  switch (action) {
    case 0:
      return "none";
    case 1:
      return "reset the GPU";
    case 2:
      return "restart the machine";
    case 3:
      return "drain peer-to-peer traffic";
    case 4:
      return "drain and reset";
    case 5:
      return "recover the IMEX domain";
    default:
      return "an action that this version does not know";
  }
}

std::string slowdown_text(uint64_t reasons) {
  std::string text;
  const auto add = [&](uint64_t bit, const char* word) {
    if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(0x8, "HW slowdown");
  add(0x20, "SW thermal slowdown");
  add(0x40, "HW thermal slowdown");
  add(0x80, "HW power brake");
  return text;
}

std::vector<Finding> judge_gpus(const GpuReport& gpus, const Expectation& expected,
                                const GpuVerdictOptions& options) {
  if (!gpus.checked) {
    if (expected.gpu.count == 0 && !gpus.hung) return {ok("GPUs", "none expected, none found")};
    return {without_answer(gpus, expected)};
  }
  std::vector<Finding> findings;
  judge_together(gpus, expected, findings);
  for (size_t i = 0; i < gpus.devices.size(); ++i) {
    const GpuDevice& gpu = gpus.devices[i];
    std::string where = fmt::format("GPU {}", i);
    if (!gpu.bus_id.empty()) where += fmt::format(" ({})", gpu.bus_id);
    GpuJudge(gpu, std::move(where), expected, findings).judge(options);
  }
  if (findings.empty())
    findings.push_back(
        ok("GPUs", fmt::format("{} found, driver {}{}{}", gpus.devices.size(), gpus.driver,
                               gpus.cuda.empty() ? "" : ", CUDA ", gpus.cuda)));
  if (options.busy_ok)
    findings.push_back(not_checked("GPU use", "a job may be running (--busy-ok)"));
  return findings;
}

}  // namespace mm::health
