#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/health/baseline.h"
#include "lib/health/nccl_version.h"
#include "tests/health/h100_node.h"

// What of a node is remembered, compared and counted, by name.

using namespace mm::health;
using mm::health::test::H100Node;

namespace {

std::string growth(const std::string& counter, uint64_t was, uint64_t is) {
  const auto found = judge_growth(counter, was, is);
  if (found.empty()) return "";
  CHECK(found.size() == 1);
  return fmt::format("{} {}", level_word(found[0].level), found[0].code);
}

}  // namespace

TEST_CASE("node facts: what should stay as it is, and nothing that comes and goes") {
  H100Node node;
  node.plant("sys/devices/virtual/net/docker0/operstate", "up\n");
  node.link("sys/class/net/docker0", "sys/devices/virtual/net/docker0");
  const mm::Json facts = node_facts(read_node(node.options()));
  CHECK(facts["gpu.count"] == 8);
  CHECK(facts["gpu.3.name"] == "NVIDIA H100 80GB HBM3");
  CHECK(facts["gpu.3.nvlinks"] == 18);
  CHECK(facts["version.gpu_driver"] == "570.124.06");
  CHECK(facts["ib.mlx5_4/1.rate"] == "400 Gb/sec (4X NDR)");
  CHECK(facts["net.eno1.state"] == "up");
  CHECK(facts["mount./home"] == "filer:/home");
  CHECK(facts["host.numa_nodes"] == 2);
  for (const auto& [key, value] : facts.items()) {
    CAPTURE(key);
    CHECK(key.find("docker0") == std::string::npos);
    CHECK(key.find("temperature") == std::string::npos);
    CHECK(key.find("memory_used") == std::string::npos);
    // Speeds are measured by --full alone.
    CHECK_FALSE(key.starts_with("speed."));
    CHECK((value.is_number() || value.is_string()));
  }
}

TEST_CASE("node facts: a full test adds speeds, of each GPU too") {
  H100Node node;
  NodeReport report = read_node(node.options());
  report.full = FullTests{.gemm_gflop_s = 900.0, .disk_read_mb_s = 2000.0};
  report.full->devices = {
      .checked = true,
      .devices = {{.name = "H100", .gemm_tflop_s = 700.0}, {.name = "H100", .to_host_gb_s = 51.0}}};
  const mm::Json facts = node_facts(report);
  CHECK(facts["speed.gemm_gflop_s"] == 900.0);
  CHECK(facts["speed.disk_read_mb_s"] == 2000.0);
  CHECK_FALSE(facts.contains("speed.disk_write_mb_s"));
  CHECK(facts["speed.gpu.0.gemm_tflop_s"] == 700.0);
  CHECK(facts["speed.gpu.1.to_host_gb_s"] == 51.0);
  CHECK_FALSE(facts.contains("speed.gpu.1.gemm_tflop_s"));
}

TEST_CASE("node counters: of ports, GPUs, links, memory and bus, all of them whole numbers") {
  H100Node node;
  node.plant("sys/class/net/eno1/statistics/tx_bytes", "12345\n");
  node.gpu(2, "link.7.crc_errors", "5");
  const mm::Json counters = node_counters(read_node(node.options()));
  CHECK(counters["net.eno1.tx_bytes"] == 12345);
  CHECK(counters["gpu.2.link.7.crc_errors"] == 5);
  for (const char* key :
       {"ib.mlx5_0/1.symbol_error", "gpu.0.ecc_corrected", "memory.mc1.corrected"})
    CHECK(counters.contains(key));
  CHECK(counters["pci." + H100Node::nic_bdf(0) + ".fatal"] == 0);
  for (const auto& [key, value] : counters.items()) {
    CAPTURE(key);
    CHECK(value.is_number_integer());
  }
}

TEST_CASE("node counters: what growth of each kind means, and from how much on") {
  CHECK(growth("ib.mlx5_0/1.link_downed", 1, 3) == "");
  CHECK(growth("ib.mlx5_0/1.link_downed", 1, 4) == "BAD F10");
  CHECK(growth("net.eth0.carrier_downs", 0, 3) == "BAD F10");
  CHECK(growth("gpu.0.ecc_uncorrected", 0, 1) == "BAD F15");
  CHECK(growth("memory.mc0.uncorrected", 5, 6) == "BAD F50");
  CHECK(growth("pci.0000:01:00.0.fatal", 0, 1) == "BAD F49");
  CHECK(growth("gpu.0.link.3.crc_errors", 0, 1) == "warn F12");
  CHECK(growth("gpu.0.link.3.recoveries", 0, 1) == "warn F12");
  CHECK(growth("ib.mlx5_0/1.symbol_error", 0, 9) == "");
  CHECK(growth("ib.mlx5_0/1.symbol_error", 0, 10) == "warn F49");
  CHECK(growth("ib.mlx5_0/1.port_rcv_errors", 7, 17) == "warn F49");
  CHECK(growth("ib.mlx5_0/1.local_link_integrity_errors", 0, 2) == "warn F49");
  // Traffic may grow as it likes; so may corrected errors, which `node` judges by their sum.
  CHECK(growth("net.eth0.rx_bytes", 0, 1'000'000'000'000) == "");
  CHECK(growth("gpu.0.ecc_corrected", 0, 1000) == "");
}

TEST_CASE("node counters: one that went back counts from zero") {
  CHECK(growth("gpu.0.ecc_uncorrected", 100, 0) == "");
  CHECK(growth("gpu.0.ecc_uncorrected", 100, 2) == "BAD F15");
  CHECK(growth("ib.mlx5_0/1.link_downed", 50, 2) == "");
  CHECK(growth("ib.mlx5_0/1.link_downed", ~uint64_t{0}, 3) == "BAD F10");
}

TEST_CASE("NCCL: versions as it numbers them, before and after 2.9; none without the library") {
  CHECK(nccl_version_text(22705) == "2.27.5");
  CHECK(nccl_version_text(20903) == "2.9.3");
  CHECK(nccl_version_text(2804) == "2.8.4");
  CHECK(nccl_version_text(0) == "0.0.0");
  CHECK(nccl_version("libno-such-nccl.so", 5000) == "");
  CHECK(nccl_version("libc.so.6", 5000) == "");
}

TEST_CASE("kernel log: of a large file the newest part is read") {
  H100Node node;
  std::string log;
  log.reserve(size_t{18} << 20);
  for (int i = 0; log.size() < (size_t{17} << 20); ++i)
    log += fmt::format("6,{},{},-;line {} of what happened long ago, again and again\n", i, i, i);
  node.plant("big", log + "6,9,9,-;the last line\n");
  const KernelLog read = read_kernel_log(node.root() / "big");
  CHECK(read.checked);
  CHECK(read.lines.back().text == "the last line");
  CHECK(read.lines.front().text.find("line 0 ") == std::string::npos);
  CHECK(read.lines.size() > 100'000);
}
