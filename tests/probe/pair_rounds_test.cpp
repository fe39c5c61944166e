#include "lib/probe/pair_rounds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "lib/base/error.h"
#include "tests/health/planted_node.h"

using namespace mm::probe;

namespace {

// A cluster in which these members, links and rails are slow or cut.
struct Cluster {
  int members = 8;
  std::vector<std::string> rails = {"eth0"};
  std::set<int> slow, cut;
  std::set<std::pair<int, int>> slow_rails;  ///< member, rail
  std::set<std::pair<int, int>> slow_links;

  PairMeasure measure(const Pair& pair, int rail) const {
    PairMeasure m{.pair = pair, .rail = rail, .gb_s = 10, .latency_us = 20};
    m.gb_s += 0.05 * ((pair.a * 7 + pair.b * 3) % 5);  // noise
    for (const int one : {pair.a, pair.b}) {
      if (slow.contains(one) || slow_rails.contains({one, rail})) m.gb_s *= 0.5;
      if (cut.contains(one)) m.error = "no answer in time";
    }
    if (slow_links.contains({pair.a, pair.b})) m.gb_s *= 0.4;
    return m;
  }
  PairReport run(const PairOptions& options = {}) const {
    std::vector<std::string> names;
    for (int i = 0; i < members; ++i) names.push_back(fmt::format("n{}", i));
    return run_pairs(names, rails, options, [&](const Slot& slot, int rail) {
      std::vector<PairMeasure> measures;
      for (const Pair& pair : slot) measures.push_back(measure(pair, rail));
      return measures;
    });
  }
  std::string faults(const PairOptions& options = {}) const {
    std::string text;
    for (const auto& f : run(options).findings)
      if (!f.code.empty()) text += fmt::format("{} {}: {}\n", f.code, f.where, f.what);
    return text;
  }
};

void check_slot(const Slot& slot, int members) {
  std::set<int> seen;
  for (const Pair& pair : slot) {
    CHECK(pair.a >= 0);
    CHECK(pair.a < pair.b);
    CHECK(pair.b < members);
    CHECK(seen.insert(pair.a).second);
    CHECK(seen.insert(pair.b).second);
  }
}

}  // namespace

TEST_CASE("pair rounds: nobody is twice in a slot, all take part, at every count") {
  for (int n = 2; n <= 33; ++n) {
    CAPTURE(n);
    std::vector<PairMeasure> measures;
    std::vector<int> times(static_cast<size_t>(n), 0);
    const auto take = [&](const std::vector<Slot>& slots) {
      for (const Slot& slot : slots) {
        check_slot(slot, n);
        for (const Pair& pair : slot) {
          CHECK_FALSE(std::any_of(measures.begin(), measures.end(),
                                  [&](const PairMeasure& m) { return m.pair == pair; }));
          measures.push_back(Cluster{}.measure(pair, 0));
          ++times[size_t(pair.a)], ++times[size_t(pair.b)];
        }
      }
    };
    take(first_round(n));
    for (const int count : times) CHECK(count >= 1);
    take(second_round(n, measures));
    if (n > 2)
      for (const int count : times) CHECK(count >= 2);
  }
  CHECK(first_round(1).empty());
}

TEST_CASE("pair rounds: all pairs come once, in as few slots as can be") {
  for (int n = 2; n <= 17; ++n) {
    CAPTURE(n);
    std::set<std::pair<int, int>> seen;
    const auto slots = all_pairs(n);
    CHECK(static_cast<int>(slots.size()) == (n % 2 == 0 ? n - 1 : n));
    for (const Slot& slot : slots) {
      check_slot(slot, n);
      for (const Pair& pair : slot) CHECK(seen.emplace(pair.a, pair.b).second);
    }
    CHECK(static_cast<int>(seen.size()) == n * (n - 1) / 2);
  }
}

TEST_CASE("pairs: one slow node is named alone, wherever it stands, at odd and even counts") {
  for (const int n : {3, 4, 5, 8, 9, 16, 31}) {
    for (int sick = 0; sick < n; ++sick) {
      CAPTURE(n);
      CAPTURE(sick);
      const Cluster cluster{.members = n, .slow = {sick}};
      CHECK(cluster.faults() == fmt::format("F06 n{}: slow with every partner\n", sick));
      CHECK(cluster.run().slots <= 4);
    }
    CHECK(Cluster{.members = n}.faults() == "");
  }
}

TEST_CASE("pairs: two slow nodes, a node that is cut off, one rail of two") {
  CHECK(Cluster{.members = 16, .slow = {2, 3}}.faults() ==
        "F06 n2: slow with every partner\nF06 n3: slow with every partner\n");
  CHECK(Cluster{.cut = {5}}.faults() == "F07 n5: cannot be reached by anyone\n");
  CHECK(Cluster{.rails = {"ib0", "ib1"}, .slow_rails = {{4, 1}}}.faults() ==
        "F06 n4 on ib1: rail is slow\n");
  CHECK(Cluster{.rails = {"ib0", "ib1"}, .slow = {4}}.faults() ==
        "F06 n4: slow with every partner\n");
}

TEST_CASE("pairs: a slow link between good nodes is named as a link") {
  CHECK(Cluster{.slow_links = {{2, 3}}}.faults() == "F06 n2 - n3 on eth0: link is slow\n");
  CHECK(Cluster{.slow_links = {{1, 6}}}.faults({.matrix = true}) ==
        "F06 n1 - n6 on eth0: link is slow\n");
  CHECK(Cluster{.members = 2}.faults({.expected_gb_s = 50}) ==
        "F06 n0 - n1 on eth0: link is slow\n");
}

TEST_CASE("pairs: text, JSON and heat map of one report; a file of them is judged again") {
  const Cluster cluster{.members = 3, .slow = {1}};
  const PairReport report = cluster.run();
  CHECK(
      pairs_text(report) ==
      "3 members, 1 rails, 3 pairs in 3 slots, suspects again in 4\n"
      "rail eth0\n"
      "member           member                 GB/s latency (us)\n"
      "n0               n1                    5.075         20.0  again 5.075, 5.075\n"
      "n0               n2                   10.050         20.0\n"
      "n1               n2                    5.075         20.0  again 5.075, 5.075\n"
      "BAD         F06 n1: slow with every partner; 5.075 GB/s, 20.0 us; others 10.050 GB/s, 20.0 "
      "us; since unknown; action: exclude the node; check its links\n");
  const mm::health::test::PlantedTree tree;
  tree.plant("pairs.json", pairs_json(report).dump());
  const PairReport back = read_pairs(tree.root() / "pairs.json");
  CHECK(back.measures.size() == 3);
  CHECK(pairs_html(report).find("<td style=\"background:hsl(") != std::string::npos);
  CHECK(replay(back)({{0, 1}}, 0)[0].gb_s == doctest::Approx(report.measures[0].gb_s));
  tree.plant("bad.json", R"({"members": ["a"], "rails": ["r"], "pairs": [{"a": 0, "b": 9}]})");
  CHECK_THROWS_AS(read_pairs(tree.root() / "bad.json"), mm::DataError);
  tree.plant("bad.json", "{}");
  CHECK_THROWS_AS(read_pairs(tree.root() / "bad.json"), mm::DataError);
}
