#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/json.h"
#include "tests/health/h100_node.h"

using namespace mm::health;
using mm::health::test::H100Node;

namespace {

// The findings that are faults, as "BAD F09 mlx5_3 port 1: port is down".
std::vector<std::string> faults(H100Node& node) {
  std::vector<std::string> lines;
  for (const Finding& f : read_node(node.options()).findings) {
    if (f.level != Level::kBad && f.level != Level::kWarn) continue;
    CHECK_FALSE(f.action.empty());
    CHECK_FALSE(f.evidence.empty());
    lines.push_back(fmt::format("{} {} {}: {}", level_word(f.level), f.code, f.where, f.what));
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("node faults: a healthy H100 node has no fault and is checked in full") {
  H100Node node;
  CHECK(faults(node).empty());
  const NodeReport report = read_node(node.options());
  CHECK(report.healthy());
  CHECK(report.gpus.devices.size() == 8);
  CHECK(report.ib_ports.size() == 8);
  CHECK(report.pci.size() == 16);
  CHECK(report.host.numa.size() == 2);
  CHECK(report.mounts.size() == 3);
  CHECK(report.seconds < 10);
}

TEST_CASE("node faults: a hundred healthy variations give no verdict") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    H100Node node(seed);
    INFO("seed ", seed);
    CHECK(faults(node) == Lines{});
  }
}

TEST_CASE("node faults: F09 a port that is down is named with its state") {
  H100Node node;
  node.plant(node.ib(3, "state"), "1: DOWN\n");
  node.plant(node.ib(3, "phys_state"), "3: Disabled\n");
  CHECK(faults(node) == Lines{"BAD F09 mlx5_3 port 1: port is down"});
  const Finding worst = read_node(node.options()).findings.front();
  CHECK(worst.evidence == "state \"1: DOWN\", phys_state \"3: Disabled\"");
}

TEST_CASE("node faults: F09 no Ethernet interface is up") {
  H100Node node;
  node.plant("sys/class/net/eno1/operstate", "down\n");
  CHECK(faults(node) == Lines{"BAD F09 network: no interface is up"});
}

TEST_CASE("node faults: F10 a flapping port, by counter and by kernel log") {
  H100Node node;
  node.plant(node.ib(5, "counters/link_downed"), "6\n");
  CHECK(faults(node) == Lines{"BAD F10 mlx5_5 port 1: port is flapping"});
  H100Node other;
  for (int i = 0; i < 3; ++i) other.kernel_line("mlx5_core 0000:24:00.0 ib1: Link down");
  CHECK(faults(other) == Lines{"BAD F10 mlx5_core 0000:24:00.0 ib1: port lost its link, 3 times"});
}

TEST_CASE("node faults: F11 slow port, narrow PCIe link, narrow GPU link") {
  H100Node node;
  node.plant(node.ib(2, "rate"), "200 Gb/sec (4X HDR)\n");
  node.plant("sys/bus/pci/devices/" + H100Node::nic_bdf(6) + "/current_link_width", "8\n");
  node.gpu(1, "pcie_width", "8");
  CHECK(faults(node) == Lines{"BAD F11 mlx5_2 port 1: port is slower than expected",
                              "BAD F11 network card 0000:74:00.0: PCIe link below its best",
                              "BAD F11 GPU 1 (0000:23:00.0): PCIe link is narrower than expected"});
}

TEST_CASE("node faults: F12 inactive NVLink, and one whose errors rise") {
  H100Node node;
  node.gpu(4, "link.17.active", "0");
  node.gpu(6, "link.3.crc_errors", "12");
  CHECK(faults(node) == Lines{"BAD F12 GPU 4 (0000:53:00.0): NVLinks are inactive",
                              "warn F12 GPU 6 (0000:73:00.0): NVLink errors"});
}

TEST_CASE("node faults: F13 Xid in the kernel log, NVML event and recovery action") {
  H100Node node;
  node.kernel_line("NVRM: Xid (PCI:0000:5b:00): 79, pid=1, GPU has fallen off the bus.");
  const auto found = read_node(node.options()).findings.front();
  CHECK(found.code == "F13");
  CHECK(found.where == "GPU 0000:5b:00");
  CHECK(found.since_unix_ms.has_value());
  H100Node event;
  event.gpu(-1, "event.count", "1");
  event.gpu(-1, "event.0.gpu", "2");
  event.gpu(-1, "event.0.xid", "119");
  event.gpu(7, "recovery_action", "2");
  CHECK(faults(event) ==
        Lines{"BAD F13 GPU 2 (0000:33:00.0): Xid 119: the GPU or its microcontroller stopped "
              "(RESET_GPU)",
              "BAD F13 GPU 7 (0000:83:00.0): driver asks: restart the machine"});
}

TEST_CASE("node faults: F14 an application's Xid leaves the node healthy") {
  H100Node node;
  node.kernel_line("NVRM: Xid (PCI:0000:13:00): 31, pid=77, name=python, MMU Fault");
  CHECK(faults(node).size() == 1);
  CHECK(read_node(node.options()).healthy());
}

TEST_CASE("node faults: F15 memory errors of every kind") {
  H100Node node;
  node.gpu(0, "ecc_uncorrected", "1");
  node.gpu(1, "rows_pending", "1");
  node.gpu(2, "rows_failed", "1");
  node.gpu(3, "sram_over_threshold", "1");
  node.gpu(4, "ecc_corrected", "30000000");
  CHECK(faults(node) == Lines{"BAD F15 GPU 0 (0000:13:00.0): uncorrected memory errors",
                              "BAD F15 GPU 1 (0000:23:00.0): a memory row waits to be remapped",
                              "BAD F15 GPU 2 (0000:33:00.0): remapping of a memory row failed",
                              "BAD F15 GPU 3 (0000:43:00.0): SRAM errors over the threshold",
                              "warn F15 GPU 4 (0000:53:00.0): many corrected memory errors"});
}

TEST_CASE("node faults: F16 each slowdown bit warns and does not fail the node") {
  for (const auto& [bits, word] : std::vector<std::pair<std::string, std::string>>{
           {"0x8", "HW slowdown"}, {"0x40", "HW thermal slowdown"}, {"0x80", "HW power brake"}}) {
    H100Node node;
    node.gpu(2, "clock_reasons", bits);
    CHECK(faults(node) == Lines{"warn F16 GPU 2 (0000:33:00.0): " + word});
  }
}

TEST_CASE("node faults: F17 a lost GPU, a missing one, a driver that never answers") {
  H100Node lost;
  lost.gpu(5, "return.nvmlDeviceGetMemoryInfo_v2", "15");
  lost.gpu(5, "return.nvmlDeviceGetMemoryInfo", "15");
  CHECK(faults(lost) == Lines{"BAD F17 GPU 5 (0000:63:00.0): GPU is lost"});
  H100Node missing;
  missing.gpu(-1, "count", "7");
  CHECK(faults(missing) == Lines{"BAD F51 GPUs: another number than expected"});
  H100Node hung;
  hung.gpu(3, "return.nvmlDeviceGetTemperature", "-1");
  NodeOptions options = hung.options();
  options.gpu_deadline_ms = 300;
  const NodeReport report = read_node(options);
  CHECK(report.findings.front().code == "F17");
  CHECK(report.findings.front().what == "the driver does not answer");
  CHECK(report.seconds < 3);
}

TEST_CASE("node faults: F46 memory held before the job names the process") {
  H100Node node;
  node.gpu(1, "memory_used", std::to_string(40ULL << 30));
  node.gpu(1, "process", "4711");
  node.gpu(1, "process_memory", std::to_string(40ULL << 30));
  node.plant("proc/4711/comm", "python3\n");
  CHECK(faults(node) == Lines{"BAD F46 GPU 1 (0000:23:00.0): in use before the job"});
  CHECK(read_node(node.options()).findings.front().evidence ==
        "40960 MiB in use, pid 4711 python3 40960 MiB");
  NodeOptions busy = node.options();
  busy.busy_ok = true;
  CHECK(read_node(busy).healthy());
}

TEST_CASE("node faults: memory, versions and file systems") {
  H100Node node;
  node.plant("sys/devices/system/edac/mc/mc1/ue_count", "2\n");
  node.plant("proc/self/mounts",
             "/dev/md0 / ext4 ro,relatime,errors=remount-ro 0 0\nfiler:/x /gone nfs4 rw 0 0\n");
  node.plant("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  0 kB\n");
  node.plant("proc/driver/nvidia/version", "NVRM version: Module  550.90.07  Release\n");
  node.plant("sys/fs/lustre/health_check", "NOT HEALTHY\n");
  CHECK(faults(node) == Lines{"BAD F50 mc1: uncorrected memory errors",
                              "BAD F51 NUMA: less than this kind of node has",
                              "BAD F51 NUMA: less than this kind of node has",
                              "BAD F18 Lustre: its client calls itself unhealthy",
                              "BAD F48 mount / (ext4): went read-only after an error",
                              "BAD F18 mount /gone (nfs4): not readable",
                              "BAD F52 GPU driver: library and kernel module differ"});
}
