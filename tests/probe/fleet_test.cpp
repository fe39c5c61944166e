#include "lib/probe/fleet.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "lib/base/error.h"
#include "tests/health/planted_node.h"
#include "tests/probe/run_mmprobe.h"

using namespace mm::probe;
using mm::Json;
using mm::health::test::PlantedTree;

namespace {

NodeResult node(int number, double gflops) {
  return {.host = fmt::format("n{}", number),
          .facts = {{"speed.gemm_gflop_s", gflops},
                    {"gpu.count", 8},
                    {"gpu.0.serial", fmt::format("s{}", number)},
                    {"version.kernel", "5.15"},
                    {"host.memory_bytes", 1'000'000 + number}}};
}

std::vector<NodeResult> fleet_of(int count) {
  std::vector<NodeResult> nodes;
  // Healthy nodes differ by up to 2 %.
  for (int i = 0; i < count; ++i) nodes.push_back(node(i, 1000 + 10 * (i * 7 % 5 - 2)));
  return nodes;
}

std::string faults(std::vector<NodeResult> nodes) {
  compare_fleet(nodes, {});
  std::string text;
  for (const NodeResult& one : nodes)
    for (const auto& f : one.faults)
      text += fmt::format("{} {} {} {}\n", one.host, level_word(f.level), f.code, f.where);
  return text;
}

}  // namespace

TEST_CASE(
    "fleet: equal nodes have no outlier; one slower by 10 % is named, at any count from three") {
  for (const int count : {3, 4, 8, 64}) {
    CAPTURE(count);
    CHECK(faults(fleet_of(count)) == "");
    for (int slow = 0; slow < count; slow += 3) {
      auto nodes = fleet_of(count);
      Json& speed = nodes[static_cast<size_t>(slow)].facts["speed.gemm_gflop_s"];
      speed = 0.9 * speed.get<double>();
      CHECK(faults(nodes) == fmt::format("n{} BAD F05 speed.gemm_gflop_s\n", slow));
    }
  }
}

TEST_CASE("fleet: what differs from the majority, and who did not answer") {
  auto nodes = fleet_of(8);
  nodes[2].facts["gpu.count"] = 7;
  nodes[3].facts["version.kernel"] = "6.1";
  nodes[5].facts.erase("gpu.count");
  nodes[6] = {.host = "n6", .answered = false};
  CHECK(faults(nodes) ==
        "n2 BAD F51 gpu.count\nn3 warn F52 version.kernel\nn5 BAD F51 gpu.count\nn6 BAD F07 n6\n");
  nodes.resize(2);
  nodes[1].facts["gpu.count"] = 7;
  CHECK(faults(nodes) == "");  // two nodes have no majority
}

TEST_CASE("fleet: text, exclude list, drain lines and JSON") {
  FleetReport report{.nodes = fleet_of(3)};
  report.nodes[1].faults.push_back({.level = mm::health::Level::kBad,
                                    .code = "F09",
                                    .where = "mlx5_3 port 1",
                                    .what = "port \"is\" $down",
                                    .evidence = "state",
                                    .action = "exclude"});
  report.lemon_scores = {{"n1", 3.5}};
  CHECK(exclude_option(report) == "--exclude=n1");
  CHECK(fleet_text(report) ==
        "node                 verdict     bad  warn  not checked  lemon\n"
        "n0                   good          0     0            0    0.0\n"
        "n1                   BAD           1     0            0    3.5 LEMON\n"
        "n2                   good          0     0            0    0.0\n"
        "n1: BAD         F09 mlx5_3 port 1: port \"is\" $down; state; since unknown; action: "
        "exclude\n"
        "--exclude=n1\n"
        "scontrol update NodeName=n1 State=DRAIN Reason=\"mmprobe F09 mlx5_3 port 1: port 'is' "
        "'down\"\n"
        "verdict 1 of 3 nodes BAD\n");
  const Json json = fleet_json(report);
  CHECK(json["exclude"] == Json::array({"n1"}));
  CHECK(json["nodes"][1]["lemon_score"] == 3.5);
}

TEST_CASE("fleet: results go through a directory; those of another job do not count") {
  const PlantedTree tree;
  NodeResult one = node(1, 5);
  one.job = "77";
  one.faults.push_back({.level = mm::health::Level::kWarn, .code = "F16", .where = "GPU 1"});
  leave_result(tree.root(), one);
  const auto got = collect_results(tree.root(), {"n1", "n2"}, 0, "77");
  CHECK(got[0].answered);
  CHECK(got[0].facts == one.facts);
  CHECK(got[0].faults.at(0).code == "F16");
  CHECK_FALSE(got[1].answered);
  CHECK_FALSE(collect_results(tree.root(), {"n1"}, 0, "78")[0].answered);
  tree.plant("n1.json", "{\"host\": 3}");
  CHECK_THROWS_AS(collect_results(tree.root(), {"n1"}, 0), mm::DataError);
}

TEST_CASE("fleet: history is appended, and bad nodes become lemons that time forgives") {
  const PlantedTree tree;
  const auto file = tree.root() / "history.jsonl";
  constexpr int64_t kDay = 24 * 3600 * 1000;
  FleetReport report{.nodes = fleet_of(2)};
  report.nodes[0].faults.push_back({.level = mm::health::Level::kBad, .code = "F05"});
  for (int day = 0; day < 4; ++day) {
    report.unix_ms = day * kDay;
    append_history(file, report);
  }
  std::ofstream(file, std::ios::app) << "broken\n{\"host\": 3}\n";
  CHECK(lemon_scores(file, 3 * kDay).at("n0") > 3);
  CHECK(lemon_scores(file, 3 * kDay).at("n1") == 0);
  CHECK(lemon_scores(file, 30 * kDay).at("n0") < 0.5);
  CHECK(lemon_scores(tree.root() / "none", 0).empty());
}

TEST_CASE(
    "mmprobe fleet: recorded results of nodes, one slower by 10 %, end with 69 and its name") {
  const PlantedTree tree;
  auto nodes = fleet_of(5);
  nodes[3].facts["speed.gemm_gflop_s"] = 890.0;
  for (const NodeResult& one : nodes) leave_result(tree.root() / "results", one);
  const std::string arguments = "fleet --replay " + (tree.root() / "results").string();
  const test::Run run = test::mmprobe(arguments + " --history " + (tree.root() / "h").string());
  CHECK(run.exit_code == 69);
  CHECK(run.output.find("\n--exclude=n3\n") != std::string::npos);
  CHECK(run.output.find(
            "n3: BAD         F05 speed.gemm_gflop_s: slower than the other nodes; 890.0, ") !=
        std::string::npos);
  CHECK(Json::parse(test::mmprobe(arguments + " --json").output)["verdict"] == "bad");
  CHECK(test::mmprobe("fleet --replay " + tree.root().string()).exit_code == 2);
}
