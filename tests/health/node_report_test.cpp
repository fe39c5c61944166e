#include "lib/health/node_report.h"

#include <doctest/doctest.h>

#include "tests/health/planted_node.h"

using namespace mm::health;
using mm::health::test::PlantedNode;

namespace {

std::string finding(const NodeReport& report, const std::string& where) {
  for (const Finding& one : report.findings) {
    if (one.where == where)
      return std::string(level_word(one.level)) + " " + one.code + " " + one.what;
  }
  return "none";
}

}  // namespace

TEST_CASE("node: a planted healthy node is read in full") {
  const PlantedNode node;
  const NodeReport report = read_node(node.options());
  CHECK(report.host.name == "n07");
  CHECK(report.host.kernel == "6.1.0");
  CHECK(report.host.cpu_model == "Xeon 8480");
  CHECK(report.host.usable_cores == 2);
  CHECK(report.host.cpu_features ==
        std::vector<std::string>{"avx2", "avx512", "avx512_bf16", "amx_bf16"});
  CHECK(finding(report, "memory") ==
        "ok  0.5 GiB of 1.0 GiB available, limited to 0.2 GiB by the control group");
  CHECK(report.host.memory.cgroup_limit_bytes == 268435456);
  CHECK(finding(report, "network") == "ok  eth0 up 100000 Mbit/s, eth1 down");
  CHECK(report.healthy());
  CHECK(node_text(report).find("bf16    fast on this CPU") != std::string::npos);
}

TEST_CASE("node: what cannot be read is said, not passed") {
  const PlantedNode node;
  node.remove("proc/meminfo");
  node.remove("sys/class/net");
  const NodeReport report = read_node(node.options());
  CHECK(finding(report, "memory") == "not checked  /proc/meminfo not readable");
  CHECK(finding(report, "network") == "not checked  no interface but loopback");
  for (const char* where : {"clock", "GPUs", "kernel log", "PCIe", "InfiniBand", "mounts", "NUMA"})
    CHECK(finding(report, where).starts_with("not checked "));
  CHECK(report.healthy());
  CHECK(node_json(report)["memory"]["total_bytes"].is_null());
}

TEST_CASE("node: no link, little memory, a lost disk are bad") {
  const PlantedNode node;
  node.plant("sys/class/net/eth0/operstate", "down");
  node.plant("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1024 kB\n");
  NodeOptions options = node.options();
  options.paths = {"/no/such/place"};
  const NodeReport report = read_node(options);
  CHECK(finding(report, "network") == "BAD F09 no interface is up");
  CHECK(finding(report, "memory") == "BAD F53 something else fills it");
  CHECK(finding(report, "path /no/such/place") == "BAD F18 not readable");
  CHECK_FALSE(report.healthy());
  CHECK(node_json(report)["healthy"] == false);
}

TEST_CASE("node: a disk with less room than asked for is bad") {
  const PlantedNode node;
  NodeOptions options = node.options();
  options.paths = {"/"};
  options.expected.storage.free_gib_min = 1e9;
  CHECK(finding(read_node(options), "path /") == "BAD F20 too little room");
  options.expected.storage.free_gib_min = 0;
  CHECK(finding(read_node(options), "path /").starts_with("ok "));
}

TEST_CASE("node: this machine is read too, within ten seconds") {
  const NodeReport here = read_node({});
  CHECK(here.host.usable_cores >= 1);
  CHECK_FALSE(here.host.name.empty());
  CHECK(here.disks.size() == 1);
  CHECK(here.seconds < 10);
  CHECK(node_text(here).find("verdict ") != std::string::npos);
}
