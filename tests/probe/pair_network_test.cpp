#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "lib/base/json.h"
#include "lib/probe/pair_transport.h"
#include "tests/health/planted_node.h"
#include "tests/probe/net_lab.h"
#include "tests/probe/run_mmprobe.h"
#include "tests/probe/star_threads.h"

using namespace mm::probe;
using mm::health::test::PlantedTree;

namespace {

// Runs `mmprobe ARGUMENTS` as one rank on every node of the lab; rank 0's output as JSON. The ranks
// meet through a way of their own: rank 0's address on the lab's network.
mm::Json on_all(const test::NetLab& lab, int nodes, const std::string& arguments) {
  std::string command;
  for (int node = nodes - 1; node >= 0; --node) {
    command += fmt::format(
        "RANK={} WORLD_SIZE={} LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR={} MASTER_PORT=29777 "
        "MM_JOB_ID=lab {} " MM_BIN_DIR "/mmprobe {}",
        node, nodes, lab.address(0), lab.inside(node), arguments);
    command += node == 0 ? "" : " >/dev/null 2>&1 & ";
  }
  FILE* pipe = ::popen(("sh -c '" + command + "; wait' 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof(part), pipe)) output.append(part, got);
  ::pclose(pipe);
  INFO(output);
  const mm::Json json = mm::Json::parse(output, nullptr, false);
  REQUIRE(json.is_object());
  return json;
}

std::string faults(const mm::Json& json) {
  std::string text;
  for (const auto& f : json["findings"])
    if (!f["code"].is_null())
      text += fmt::format("{} {}: {}\n", f["code"].get<std::string>(),
                          f["where"].get<std::string>(), f["what"].get<std::string>());
  return text;
}

const std::string kPairs =
    "pairs --json --rails eth0 --bytes 1M --pings 20 --pair-timeout 3 --tolerance 0.6 "
    "--latency-factor 1000 --timeout 30";

}  // namespace

TEST_CASE("pairs: three ranks of this machine measure one another over loopback") {
  std::vector<PairMeasure> got;
  test::run_ranks(3, [&](RankStar& star) {
    TransportOptions options{.rails = {{"lo", "127.0.0.1"}}, .bytes = 1 << 20, .pings = 5};
    PairTransport links(options, star);
    const auto first = links.measure({{0, 1}}, 0);
    const auto second = links.measure({{1, 2}}, 0);
    if (star.rank() == 2) got = {first[0], second[0]};
  });
  REQUIRE(got.size() == 2);
  for (const PairMeasure& m : got) {
    CHECK(m.error == "");
    CHECK(m.gb_s > 0);
    CHECK(m.latency_us > 0);
  }
}

TEST_CASE("pairs: between network namespaces a slowed node is named") {
  constexpr int kNodes = 5;
  const test::NetLab lab(kNodes);
  if (!lab.ready()) {
    MESSAGE("skipped: network namespaces need root and iproute2");
    return;
  }
  for (int node = 0; node < kNodes; ++node) REQUIRE(lab.limit(node, "50mbit"));
  CHECK(faults(on_all(lab, kNodes, kPairs)) == "");
  REQUIRE(lab.limit(3, "10mbit"));
  const mm::Json slow = on_all(lab, kNodes, kPairs);
  const std::string host = slow["members"][3];
  CHECK(faults(slow) == "F06 " + host + ": slow with every partner\n");
}

TEST_CASE("pairs: a rail that is cut is told from a node that is lost, and a flap does not hang") {
  constexpr int kNodes = 3;
  const test::NetLab lab(kNodes);
  if (!lab.ready()) {
    MESSAGE("skipped: network namespaces need root and iproute2");
    return;
  }
  // The ranks meet by eth0; eth1 is the rail under test.
  for (int node = 0; node < kNodes; ++node)
    REQUIRE((lab.add_rail(node) && lab.limit(node, "50mbit") && lab.limit(node, "50mbit", "eth1")));
  const std::string both = kPairs + " --rails eth1";
  CHECK(faults(on_all(lab, kNodes, both)) == "");
  REQUIRE(lab.rail(2, false));
  const mm::Json cut = on_all(lab, kNodes, both);
  const std::string host = cut["members"][2];
  CHECK(faults(cut) == "F06 " + host + " on eth1: rail is cut\n");
  std::atomic<bool> stop = false;
  std::thread flapper([&] {
    for (bool up = true; !stop; up = !up) lab.rail(2, up);
  });
  const mm::Json flap = on_all(lab, kNodes, both);
  stop = true;
  flapper.join();
  CHECK(flap["pairs"].size() == 6);
  CHECK(faults(flap).find(" on eth0") == std::string::npos);
}

TEST_CASE("nccl: a collective below expectation names the node whose link is slow") {
  constexpr int kNodes = 3;
  if (!std::filesystem::exists(MM_BIN_DIR "/../lib/libmm_probe_engine.so")) {
    MESSAGE("skipped: this build has no LibTorch");
    return;
  }
  const test::NetLab lab(kNodes);
  if (!lab.ready()) {
    MESSAGE("skipped: network namespaces need root and iproute2");
    return;
  }
  for (int node = 0; node < kNodes; ++node)
    REQUIRE(lab.limit(node, node == 1 ? "10mbit" : "50mbit"));
  const mm::Json json = on_all(lab, kNodes,
                               "nccl all_reduce --backend gloo --json --min-bytes 256K --max-bytes "
                               "256K --iterations 2 --expect 1 --interface eth0");
  REQUIRE(json["hosts"].size() == 3);
  CHECK(faults(json).starts_with("F06 3 ranks: bus bandwidth is low\n"));
  CHECK(faults(json).find(": slow with every partner\n") != std::string::npos);
}
