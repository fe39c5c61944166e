#include "lib/health/nvml_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text_escape.h"
#include "lib/health/guarded_call.h"
#include "lib/health/nvml_api.h"
#include "lib/health/nvml_session.h"

namespace mm::health {
namespace {

constexpr unsigned kMaxLinks = 18;
constexpr unsigned kMaxDevices = 64;

// Asks one device; remembers the first answer that is a fault.
class Asker {
 public:
  Asker(const NvmlApi& nvml, NvmlDevice device, GpuDevice& gpu)
      : nvml_(nvml), device_(device), gpu_(gpu) {}

  /// Was it answered? A function that the driver lacks, or that this GPU does not support, is no
  /// fault.
  template <typename Function, typename... Args>
  bool ask(const char* what, Function* function, Args... args) {
    if (function == nullptr) return false;
    const int code = function(device_, args...);
    if (code != kNvmlSuccess) note(what, code);
    return code == kNvmlSuccess;
  }
  template <typename Function>
  std::string text(const char* what, Function* function) {
    std::array<char, 128> buffer{};
    return ask(what, function, buffer.data(), static_cast<unsigned>(buffer.size() - 1))
               ? escape_text(buffer.data())
               : std::string();
  }
  template <typename T, typename Function, typename... Args>
  std::optional<T> value(const char* what, Function* function, Args... args) {
    T result{};
    return ask(what, function, args..., &result) ? std::optional<T>(result) : std::nullopt;
  }

  void note(const char* what, int code) {
    // Codes that mean a sick GPU; others say that we may not or cannot ask.
    constexpr std::array kFaults = {8, 11, 14, kNvmlLost, 16, 18, 999};
    for (const int fault : kFaults) {
      if (code != fault || !gpu_.problem.empty()) continue;
      gpu_.problem_code = code;
      gpu_.problem = fmt::format("{}: {} (NVML {})", what, nvml_.error_text(code), code);
    }
  }

 private:
  const NvmlApi& nvml_;
  NvmlDevice device_;
  GpuDevice& gpu_;
};

// As sysfs and the kernel log write it: a domain of four digits.
std::string bus_id_of(NvmlPci& pci) {
  pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
  std::string id = escape_text(pci.bus_id);
  if (id.size() == 16 && id.starts_with("0000")) id.erase(0, 4);
  return id;
}

void read_identity(const NvmlApi& nvml, Asker& asker, GpuDevice& gpu) {
  gpu.name = asker.text("name", nvml.name);
  gpu.uuid = asker.text("uuid", nvml.uuid);
  gpu.serial = asker.text("serial", nvml.serial);
  gpu.vbios = asker.text("vbios", nvml.vbios);
  NvmlPci pci;
  if (asker.ask("pci", nvml.pci, &pci)) gpu.bus_id = bus_id_of(pci);
}

void read_memory(const NvmlApi& nvml, Asker& asker, GpuDevice& gpu) {
  // The second form leaves out what the driver keeps for itself.
  NvmlMemoryV2 memory{.version = nvml_version<NvmlMemoryV2>(2)};
  if (asker.ask("memory", nvml.memory_v2, &memory)) {
    gpu.memory_bytes = memory.total;
    gpu.memory_used_bytes = memory.used;
    return;
  }
  NvmlMemory plain;
  if (!asker.ask("memory", nvml.memory, &plain)) return;
  gpu.memory_bytes = plain.total;
  gpu.memory_used_bytes = plain.used;
}

void read_errors(const NvmlApi& nvml, Asker& asker, GpuDevice& gpu) {
  using Count = unsigned long long;
  constexpr int kCorrected = 0, kUncorrected = 1, kVolatile = 0, kLife = 1;
  gpu.ecc_corrected = asker.value<Count>("ecc", nvml.ecc, kCorrected, kVolatile);
  gpu.ecc_uncorrected = asker.value<Count>("ecc", nvml.ecc, kUncorrected, kVolatile);
  gpu.ecc_uncorrected_total = asker.value<Count>("ecc", nvml.ecc, kUncorrected, kLife);
  NvmlSramStatus sram{.version = nvml_version<NvmlSramStatus>(1)};
  if (asker.ask("sram", nvml.sram, &sram)) gpu.sram_over_threshold = sram.over_threshold != 0;
  RemappedRows rows;
  unsigned pending = 0, failed = 0;
  if (asker.ask("rows", nvml.rows, &rows.corrected, &rows.uncorrected, &pending, &failed)) {
    rows.pending = pending != 0;
    rows.failed = failed != 0;
    gpu.rows = rows;
  }
  NvmlField field{.field = kFieldRecoveryAction};
  if (asker.ask("fields", nvml.fields, 1, &field) && field.result == kNvmlSuccess)
    gpu.recovery_action = field.value.u;
}

void read_speed(const NvmlApi& nvml, Asker& asker, GpuDevice& gpu) {
  constexpr int kCoreSensor = 0, kSmClock = 1;
  gpu.clock_reasons = asker.value<unsigned long long>("clock reasons", nvml.clock_reasons);
  gpu.temperature_c = asker.value<unsigned>("temperature", nvml.temperature, kCoreSensor);
  gpu.power_mw = asker.value<unsigned>("power", nvml.power);
  gpu.sm_clock_mhz = asker.value<unsigned>("clock", nvml.clock, kSmClock);
  gpu.pcie_generation = asker.value<unsigned>("pcie", nvml.pcie_generation);
  gpu.pcie_width = asker.value<unsigned>("pcie", nvml.pcie_width);
  gpu.pcie_max_generation = asker.value<unsigned>("pcie", nvml.pcie_max_generation);
  gpu.pcie_max_width = asker.value<unsigned>("pcie", nvml.pcie_max_width);
  gpu.pcie_replays = asker.value<unsigned>("pcie replays", nvml.pcie_replays);
}

void read_links(const NvmlApi& nvml, Asker& asker, GpuDevice& gpu) {
  constexpr int kReplay = 0, kRecovery = 1, kCrcFlit = 2;
  using Count = unsigned long long;
  for (unsigned i = 0; i < kMaxLinks; ++i) {
    const auto state = asker.value<unsigned>("nvlink", nvml.link_state, i);
    if (!state) continue;
    NvLink link{.link = static_cast<int>(i), .active = *state != 0};
    link.replays = asker.value<Count>("nvlink", nvml.link_errors, i, kReplay);
    link.recoveries = asker.value<Count>("nvlink", nvml.link_errors, i, kRecovery);
    link.crc_errors = asker.value<Count>("nvlink", nvml.link_errors, i, kCrcFlit);
    constexpr unsigned kSwitch = 2;
    NvmlPci remote;
    if (asker.ask("nvlink", nvml.link_remote, i, &remote)) link.remote = bus_id_of(remote);
    link.to_switch = asker.value<unsigned>("nvlink", nvml.link_remote_kind, i) == kSwitch;
    gpu.links.push_back(link);
  }
}

void read_processes(const NvmlApi& nvml, Asker& asker, GpuDevice& gpu) {
  std::array<NvmlProcess, 64> found{};
  unsigned count = found.size();
  if (!asker.ask("processes", nvml.processes, &count, found.data())) return;
  for (unsigned i = 0; i < std::min<unsigned>(count, found.size()); ++i) {
    // All ones: the driver does not tell.
    const uint64_t bytes = found[i].memory_bytes == ~0ULL ? 0 : found[i].memory_bytes;
    gpu.processes.push_back({found[i].pid, bytes});
  }
}

GpuDevice read_device(const NvmlApi& nvml, unsigned index, NvmlDevice& device) {
  GpuDevice gpu;
  if (const int code = nvml.device(index, &device); code != kNvmlSuccess) {
    gpu.problem_code = code;
    gpu.problem = fmt::format("handle: {} (NVML {})", nvml.error_text(code), code);
    return gpu;
  }
  Asker asker(nvml, device, gpu);
  read_identity(nvml, asker, gpu);
  read_memory(nvml, asker, gpu);
  read_errors(nvml, asker, gpu);
  read_speed(nvml, asker, gpu);
  read_links(nvml, asker, gpu);
  read_processes(nvml, asker, gpu);
  return gpu;
}

// Xids since the last call that NVML kept; it keeps none of before the registration.
void take_events(const NvmlApi& nvml, NvmlEventSet set, const std::vector<NvmlDevice>& handles,
                 GpuReport& report) {
  NvmlEvent event;
  for (int taken = 0; taken < 64 && nvml.events_wait(set, &event, 0) == kNvmlSuccess; ++taken) {
    for (size_t i = 0; i < handles.size(); ++i) {
      if (handles[i] == event.device && event.type == kEventXid)
        report.devices[i].xid_events.push_back(static_cast<unsigned>(event.data));
    }
  }
}

std::string start_problem(const NvmlLibrary& library, const NvmlApi& nvml,
                          const std::string& name) {
  if (!library) return fmt::format("{} not found", name);
  if (!nvml.complete()) return fmt::format("{} lacks functions of NVML", name);
  const int code = nvml.init();
  if (code == kNvmlSuccess) return "";
  return fmt::format("NVML does not start: {} (NVML {})", nvml.error_text(code), code);
}

}  // namespace

struct NvmlSession::State {
  explicit State(const std::string& name)
      : library(name), nvml(library), problem(start_problem(library, nvml, name)) {}
  ~State() {
    if (events != nullptr) nvml.events_free(events);
    if (problem.empty()) nvml.shutdown();
  }

  void register_events(const std::vector<NvmlDevice>& handles) {
    if (events != nullptr || !nvml.events_new || !nvml.events_register || !nvml.events_wait ||
        !nvml.events_free || nvml.events_new(&events) != kNvmlSuccess)
      return;
    for (const NvmlDevice device : handles) {
      if (device != nullptr) nvml.events_register(device, kEventXid, events);
    }
  }

  NvmlLibrary library;
  NvmlApi nvml;
  std::string problem;
  NvmlEventSet events = nullptr;
};

NvmlSession::NvmlSession(const std::string& library) : state_(std::make_unique<State>(library)) {}
NvmlSession::~NvmlSession() = default;

GpuReport NvmlSession::read() {
  const NvmlApi& nvml = state_->nvml;
  GpuReport report{.problem = state_->problem};
  if (!report.problem.empty()) return report;
  std::array<char, 128> driver{};
  if (nvml.driver(driver.data(), driver.size() - 1) == kNvmlSuccess) report.driver = driver.data();
  int cuda = 0;
  if (nvml.cuda && nvml.cuda(&cuda) == kNvmlSuccess)
    report.cuda = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  unsigned count = 0;
  if (const int code = nvml.count(&count); code != kNvmlSuccess) {
    report.problem = fmt::format("cannot count devices: {} (NVML {})", nvml.error_text(code), code);
    return report;
  }
  report.checked = true;
  std::vector<NvmlDevice> handles(std::min(count, kMaxDevices), nullptr);
  for (unsigned i = 0; i < handles.size(); ++i)
    report.devices.push_back(read_device(nvml, i, handles[i]));
  state_->register_events(handles);
  if (state_->events != nullptr) take_events(nvml, state_->events, handles, report);
  return report;
}

GpuReport read_gpus(const std::string& library) { return NvmlSession(library).read(); }

GpuReport read_gpus_guarded(const std::string& library, int deadline_ms) {
  GuardedCall call = GuardedCall::start([&] { return gpus_json(read_gpus(library)).dump(); });
  const auto answer = call.finish(deadline_ms);
  if (answer) return gpus_from_json(parse_json(*answer, "GPU report"));
  GpuReport report;
  report.hung = answer.failure().kind == "hung";
  report.problem = "NVML: " + answer.failure().message;
  return report;
}

}  // namespace mm::health
