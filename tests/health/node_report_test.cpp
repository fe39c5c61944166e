#include "lib/health/node_report.h"

#include <doctest/doctest.h>

#include "tests/health/planted_node.h"

using namespace mm::health;
using mm::health::test::PlantedNode;

namespace {

std::string finding(const NodeReport& report, const std::string& what) {
  for (const NodeFinding& one : report.findings) {
    if (one.what != what) continue;
    return (one.verdict == Verdict::kOk    ? "ok "
            : one.verdict == Verdict::kBad ? "BAD "
                                           : "? ") +
           one.detail;
  }
  return "none";
}

}  // namespace

TEST_CASE("node: a planted healthy node is read in full") {
  const PlantedNode node;
  const NodeReport report = read_node(node.options());
  CHECK(report.host == "n07");
  CHECK(report.kernel == "6.1.0");
  CHECK(report.cpu_model == "Xeon 8480");
  CHECK(report.usable_cores == 2);
  CHECK(report.cpu_features ==
        std::vector<std::string>{"avx2", "avx512", "avx512_bf16", "amx_bf16"});
  CHECK(finding(report, "memory") ==
        "ok 0.5 GiB of 1.0 GiB available, limited to 0.2 GiB by the control group");
  CHECK(report.memory.cgroup_limit_bytes == 268435456);
  CHECK(finding(report, "network") == "ok eth0 up 100000 Mbit/s, eth1 down");
  CHECK(report.healthy());
  CHECK(node_text(report).find("bf16    fast on this CPU") != std::string::npos);
}

TEST_CASE("node: what cannot be read is said, not passed") {
  const PlantedNode node;
  node.remove("proc/meminfo");
  node.remove("sys/class/net");
  const NodeReport report = read_node(node.options());
  CHECK(finding(report, "memory") == "? /proc/meminfo not readable");
  CHECK(finding(report, "network") == "? no interface but loopback");
  CHECK(finding(report, "clock").starts_with("? "));
  CHECK(finding(report, "GPUs").starts_with("? "));
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
  CHECK(finding(report, "network").starts_with("BAD "));
  CHECK(finding(report, "memory").starts_with("BAD "));
  CHECK(finding(report, "disk") == "BAD /no/such/place: No such file or directory");
  CHECK_FALSE(report.healthy());
  CHECK(node_json(report)["healthy"] == false);
}

TEST_CASE("node: a disk with less room than asked for is bad") {
  const PlantedNode node;
  NodeOptions options = node.options();
  options.paths = {"/"};
  options.min_free_bytes = ~uint64_t{0};
  CHECK(finding(read_node(options), "disk").starts_with("BAD /: "));
  options.min_free_bytes = 0;
  CHECK(finding(read_node(options), "disk").starts_with("ok /: "));
}

TEST_CASE("node: this machine is read too") {
  const NodeReport here = read_node({});
  CHECK(here.usable_cores >= 1);
  CHECK_FALSE(here.host.empty());
  CHECK(here.disks.size() == 1);
  CHECK(node_text(here).find("verdict ") != std::string::npos);
}
