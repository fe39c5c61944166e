#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/probe/fleet_links.h"
#include "lib/probe/fleet_plan.h"
#include "tests/health/mutations.h"
#include "tests/health/planted_node.h"

// Files that other nodes, or other days, have left: read, or refused with our own error.

using namespace mm::probe;
using mm::Json;
using mm::health::test::Mutations;
using mm::health::test::PlantedTree;

namespace {

struct Count {
  int taken = 0, refused = 0;
};

template <typename Body>
Count all_of(const std::string& text, int times, Body&& body) {
  Mutations mutations(text);
  Count count;
  for (int i = 0; i < times; ++i) {
    try {
      body(mutations.next());
      ++count.taken;
    } catch (const mm::Error&) {
      ++count.refused;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("hostile files: measurements of pairs are judged or refused") {
  PairReport report{.members = {"a", "b", "c"}, .rails = {"r0", "r1"}};
  for (const Pair& pair : {Pair{0, 1}, Pair{0, 2}, Pair{1, 2}})
    report.measures.push_back({.pair = pair, .rail = 1, .gb_s = 3, .latency_us = 9});
  report.measures[1].again = {{.pair = {0, 2}, .rail = 1, .error = "cut"}};
  report.measures[2].losses_b = 2;
  const Count count = all_of(pairs_json(report).dump(), 600, [](const std::string& text) {
    const PairReport back = pairs_from_json(mm::parse_json(text, "pairs"), "pairs");
    for (const auto& finding : judge_pairs(back, {})) finding_line(finding);
    pairs_text(back);
    pairs_html(back);
  });
  CHECK(count.taken > 20);
  CHECK(count.refused > 100);
}

TEST_CASE("hostile files: results of nodes are compared or refused") {
  NodeResult good{
      .host = "n1", .job = "7", .facts = {{"speed.gemm_gflop_s", 5.0}, {"gpu.count", 8}}};
  good.faults.push_back({.level = mm::health::Level::kWarn, .code = "F16", .where = "GPU 1"});
  const Count count = all_of(node_result_json(good).dump(), 600, [&](const std::string& text) {
    std::vector<NodeResult> nodes(3, good);
    nodes.push_back(node_result_from(mm::parse_json(text, "result")));
    compare_fleet(nodes, {});
    fleet_text({.nodes = nodes});
    fleet_json({.nodes = nodes}).dump();
  });
  CHECK(count.taken > 20);
  CHECK(count.refused > 100);
}

TEST_CASE("hostile files: the links of a recorded fleet, its plan and its history") {
  const PlantedTree tree;
  const std::string notes = R"([{"level": "BAD", "code": "F06", "where": "x", "what": "slow",
    "evidence": null, "since": null, "action": null, "hosts": ["n1", "n2"]}])";
  Count count = all_of(notes, 300, [&](const std::string& text) {
    tree.plant("links/notes.json", text);
    FleetReport report{.nodes = {{.host = "n1"}, {.host = "n2"}}};
    read_link_checks(tree.root(), {}, report);
    charge_links(report);
    fleet_text(report);
  });
  CHECK(count.taken > 0);
  CHECK(count.refused > 50);
  const FleetPlan plan{
      .job = "7", .address = "10.0.0.1", .hosts = {"n1", "n2"}, .ranks_per_node = {1, 8}};
  count = all_of(plan_json(plan).dump(), 300, [&](const std::string& text) {
    tree.plant("links/plan.json", text);
    if (const auto got = await_plan(tree.root(), "7", 0)) {
      mm::RankEnv ranks;
      ranks.hosts = {"n1"};
      seat_in(*got, ranks, "");
    }
  });
  CHECK(count.refused > 50);
  // Broken lines of a history are left out, whatever they are.
  Mutations lines(R"({"time_unix_ms":1000,"host":"n1","bad":true,"codes":["F05"]})");
  for (int i = 0; i < 300; ++i) {
    tree.plant("history",
               lines.next() + "\n" + R"({"time_unix_ms":0,"host":"n2","bad":true})" + "\n");
    CHECK(lemon_scores(tree.root() / "history", 0).contains("n2"));
  }
}
