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

// Runs `mmprobe ARGUMENTS` as one task on every node of the lab, as srun would; rank 0's output as
// JSON. The ranks meet by rank 0's address on the lab's first network.
mm::Json on_all(const test::NetLab& lab, int nodes, const std::string& arguments) {
  std::string command;
  // Of this run: the last one's may still be closing.
  static std::atomic<int> port = 29700;
  ++port;
  for (int node = nodes - 1; node >= 0; --node) {
    command += fmt::format(
        "SLURM_PROCID={0} SLURM_NTASKS={1} SLURM_LOCALID=0 SLURM_NODEID={0} SLURM_JOB_ID={4} "
        "SLURM_JOB_NODELIST=\"n[0-{2}]\" SLURM_TASKS_PER_NODE=\"1(x{1})\" MASTER_ADDR={3} "
        "MASTER_PORT={4} {5} " MM_BIN_DIR "/mmprobe {6}",
        node, nodes, nodes - 1, lab.address(0), port.load(), lab.inside(node), arguments);
    command += node == 0 ? "" : " >/dev/null 2>&1 & ";
  }
  FILE* pipe = ::popen(("sh -c '" + command + "; wait' 2>/dev/null").c_str(), "r");
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

// Takes a node's second rail down and up again for as long as it lives.
class Flapping {
 public:
  Flapping(const test::NetLab& lab, int node)
      : thread_([this, &lab, node] {
          for (bool up = false; !stop_; up = !up) lab.rail(node, up);
          lab.rail(node, true);
        }) {}
  Flapping(const Flapping&) = delete;
  ~Flapping() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

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

TEST_CASE("pairs: a rail that is cut is told from a node that is lost") {
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
}

TEST_CASE("pairs: a link that comes and goes is named, with what its interface lost") {
  constexpr int kNodes = 4;
  const test::NetLab lab(kNodes);
  if (!lab.ready()) {
    MESSAGE("skipped: network namespaces need root and iproute2");
    return;
  }
  for (int node = 0; node < kNodes; ++node)
    REQUIRE((lab.add_rail(node) && lab.limit(node, "50mbit") && lab.limit(node, "50mbit", "eth1")));
  const Flapping flapping(lab, 2);
  const mm::Json json = on_all(lab, kNodes, kPairs + " --rails eth1");
  CHECK(json["pairs"].size() >= 8);
  CHECK(faults(json) == "F10 n2 on eth1: link comes and goes\n");
  const std::string evidence = json["findings"][0]["evidence"];
  CHECK(evidence.starts_with("the interface lost its link "));
}

namespace {

// Three ranks that meet by eth0 and whose collective goes by eth1; nothing where there is no lab or
// no LibTorch.
const std::string kNccl =
    "nccl all_reduce --backend gloo --json --min-bytes 256K --max-bytes 256K --iterations 2 "
    "--expect 1 --interface eth1 --timeout 6";

bool collective_lab(const test::NetLab& lab) {
  if (!std::filesystem::exists(MM_BIN_DIR "/../lib/libmm_probe_engine.so") || !lab.ready()) {
    MESSAGE("skipped: needs LibTorch, root and iproute2");
    return false;
  }
  for (int node = 0; node < 3; ++node)
    REQUIRE((lab.add_rail(node) && lab.limit(node, "200mbit", "eth1")));
  return true;
}

}  // namespace

TEST_CASE("nccl: between network namespaces a slow collective names the node whose link is slow") {
  const test::NetLab lab(3);
  if (!collective_lab(lab)) return;
  REQUIRE(lab.limit(1, "30mbit", "eth1"));
  const mm::Json slow = on_all(lab, 3, kNccl);
  CHECK(slow["hosts"] == mm::Json::array({"n0", "n1", "n2"}));
  CHECK(faults(slow) == "F06 3 ranks: bus bandwidth is low\nF06 n1: slow with every partner\n");
  CHECK(slow["findings"][1]["hosts"] == mm::Json::array({"n1"}));
}

TEST_CASE("nccl: between network namespaces a link that comes and goes is named") {
  const test::NetLab lab(3);
  if (!collective_lab(lab)) return;
  const Flapping flapping(lab, 2);
  CHECK(faults(on_all(lab, 3, kNccl)).find("F10 n2 on eth1: link comes and goes\n") !=
        std::string::npos);
}

TEST_CASE("nccl: between network namespaces a collective that does not end names who is cut off") {
  const test::NetLab lab(3);
  if (!collective_lab(lab)) return;
  REQUIRE(lab.rail(2, false));
  const mm::Json cut = on_all(lab, 3, kNccl);
  CHECK(faults(cut).starts_with("F07 3 ranks: the collective did not end\n"));
  CHECK(faults(cut).find("F07 n2: cannot be reached by anyone\n") != std::string::npos);
  CHECK_FALSE(cut["failure"].is_null());
}

TEST_CASE(
    "fleet: between network namespaces a slow, a flapping and a cut node go into one verdict") {
  constexpr int kNodes = 4;
  const test::NetLab lab(kNodes);
  if (!lab.ready()) {
    MESSAGE("skipped: network namespaces need root and iproute2");
    return;
  }
  const PlantedTree shared;
  for (int node = 0; node < kNodes; ++node)
    REQUIRE((lab.add_rail(node) && lab.limit(node, "50mbit", "eth1")));
  const std::string fleet =
      "fleet --rails eth1 --pair-bytes 1M --pair-timeout 3 --pair-tolerance "
      "0.6 --pair-latency-factor 1000 --nccl-bytes 65536 --nccl-timeout 60 --timeout 20 --json "
      "--dir " +
      shared.root().string();
  const mm::Json good = on_all(lab, kNodes, fleet + " --checks pairs,nccl");
  CHECK(good["verdict"] == "good");
  CHECK(good["pairs"]["members"].size() == 4);
  const bool gloo = std::filesystem::exists(MM_BIN_DIR "/../lib/libmm_probe_engine.so");
  CHECK(good["collectives"].size() == (gloo ? 1 : 0));
  REQUIRE(lab.limit(3, "10mbit", "eth1"));
  const mm::Json slow = on_all(
      lab, kNodes, fleet + " --checks pairs,nccl --history " + (shared.root() / "h").string());
  CHECK(slow["exclude"] == mm::Json::array({"n3"}));
  CHECK(slow["nodes"][3]["faults"][0]["what"] == "slow with every partner");
  CHECK(slow["nodes"][3]["lemon_score"] == 1.0);
  REQUIRE(lab.limit(3, "50mbit", "eth1"));
  const std::string pairs_only = fleet + " --checks pairs";
  {
    const Flapping flapping(lab, 1);
    const mm::Json json = on_all(lab, kNodes, pairs_only);
    CHECK(json["exclude"] == mm::Json::array({"n1"}));
    CHECK(json["nodes"][1]["faults"][0]["code"] == "F10");
  }
  REQUIRE((lab.rail(1, true) && lab.rail(2, false)));
  const mm::Json cut = on_all(lab, kNodes, pairs_only);
  CHECK(cut["exclude"] == mm::Json::array({"n2"}));
  CHECK(cut["nodes"][2]["faults"][0]["code"] == "F07");
}
