#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/probe/pair_grade.h"
#include "tests/health/planted_node.h"

// Links that come and go: what repeats, pauses and the interfaces' own counters tell.

using namespace mm::probe;

namespace {

PairMeasure good() { return {.gb_s = 10, .latency_us = 20}; }
PairMeasure slow() { return {.gb_s = 4, .latency_us = 20}; }
PairMeasure cut() { return {.error = "no answer in time"}; }
PairMeasure lossy(PairMeasure m) {
  m.stall_ms = 210;
  m.retransmits = 3;
  return m;
}

Course course(PairMeasure first, std::vector<PairMeasure> again = {}) {
  first.again = std::move(again);
  return course_of(first, {.gb_s = 10, .latency_us = 20}, {});
}

// Eight members; what a pair shows depends on how often it was measured.
struct Flaky {
  std::function<PairMeasure(const Pair& pair, int rail, int time)> show;
  int members = 8;
  std::vector<std::string> rails = {"ib0"};

  PairReport run(const PairOptions& options = {}) const {
    std::vector<std::string> names;
    for (int i = 0; i < members; ++i) names.push_back(fmt::format("n{}", i));
    std::map<std::tuple<int, int, int>, int> times;
    return run_pairs(names, rails, options, [&](const Slot& slot, int rail) {
      std::vector<PairMeasure> measures;
      for (const Pair& pair : slot) {
        measures.push_back(show(pair, rail, times[{pair.a, pair.b, rail}]++));
        measures.back().pair = pair;
        measures.back().rail = rail;
      }
      return measures;
    });
  }
  std::string faults(const PairOptions& options = {}) const {
    std::string text;
    for (const auto& f : run(options).findings)
      if (!f.code.empty())
        text += fmt::format("{} {} {}: {}\n", level_word(f.level), f.code, f.where, f.what);
    return text;
  }
};

bool touches(const Pair& pair, int member) { return pair.a == member || pair.b == member; }

}  // namespace

TEST_CASE("pair course: always bad is bad, mixed with losses comes and goes, once is once") {
  CHECK(course(good()) == Course::kGood);
  CHECK(course(slow()) == Course::kBad);
  CHECK(course(slow(), {slow(), slow()}) == Course::kBad);
  CHECK(course(cut(), {cut(), cut()}) == Course::kBad);
  CHECK(course(slow(), {good(), good()}) == Course::kOnce);
  CHECK(course(cut(), {good(), good()}) == Course::kComesAndGoes);
  CHECK(course(slow(), {cut(), slow()}) == Course::kComesAndGoes);
  CHECK(course(lossy(slow()), {good(), good()}) == Course::kComesAndGoes);
  CHECK(course(lossy(good())) == Course::kOnce);
  CHECK(course(lossy(good()), {lossy(good()), good()}) == Course::kComesAndGoes);
  // A pause without lost packets is the machine's, lost packets without a pause are congestion.
  PairMeasure pause = good(), losses = good();
  pause.stall_ms = 500;
  losses.retransmits = 100;
  CHECK(course(pause) == Course::kGood);
  CHECK(course(losses) == Course::kGood);
}

TEST_CASE("pairs: a member whose link is there every other time is named as coming and going") {
  for (int sick = 0; sick < 8; ++sick) {
    CAPTURE(sick);
    const Flaky cluster{.show = [&](const Pair& pair, int, int time) {
      return touches(pair, sick) && time % 2 == 0 ? cut() : good();
    }};
    CHECK(cluster.faults() ==
          fmt::format("BAD F10 n{} on ib0: link comes and goes with every partner\n", sick));
    CHECK(cluster.run().repeats > 0);
    CHECK(cluster.run().findings.front().hosts == std::vector{fmt::format("n{}", sick)});
  }
}

TEST_CASE("pairs: without repeats what is cut once is cut; a slow moment alone is a warning") {
  const Flaky flapping{.show = [](const Pair& pair, int, int time) {
    return touches(pair, 3) && time == 0 ? cut() : good();
  }};
  CHECK(flapping.faults({.repeats = 0}) == "BAD F07 n3: cannot be reached by anyone\n");
  const Flaky moment{.show = [](const Pair& pair, int, int time) {
    return pair == Pair{2, 3} && time == 0 ? slow() : good();
  }};
  CHECK(moment.faults() == "warn F06 n2 - n3 on ib0: link was slow once, good again\n");
  const auto report = moment.run();
  CHECK(report.findings.front().evidence ==
        "measured 4.000 GB/s, then 10.000 GB/s, then 10.000 GB/s");
  CHECK_FALSE(any_bad(report.findings));
}

TEST_CASE("pairs: a link that comes and goes between good members is named as a link") {
  const Flaky cluster{.show = [](const Pair& pair, int, int time) {
    return pair == Pair{2, 3} && time != 1 ? lossy(slow()) : good();
  }};
  const auto report = cluster.run();
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].code == "F10");
  CHECK(report.findings[0].where == "n2 - n3 on ib0");
  CHECK(report.findings[0].hosts == std::vector<std::string>{"n2", "n3"});
  CHECK(report.findings[0].evidence ==
        "measured 4.000 GB/s with a pause of 210 ms, then 10.000 GB/s, then 4.000 GB/s with a "
        "pause of 210 ms");
}

TEST_CASE("pairs: an interface that lost its link is named whatever the figures say, by rail") {
  const Flaky cluster{.show =
                          [](const Pair& pair, int rail, int) {
                            PairMeasure m = good();
                            if (rail == 1 && pair.a == 5) m.losses_a = 2;
                            if (rail == 1 && pair.b == 5) m.losses_b = 2;
                            return m;
                          },
                      .rails = {"ib0", "ib1"}};
  CHECK(cluster.faults() == "BAD F10 n5 on ib1: link comes and goes\n");
  CHECK(cluster.run().findings[0].evidence ==
        "the interface lost its link 2 times while it was measured");
}

TEST_CASE("pairs: of many suspects eight are measured again, in slots in which nobody is twice") {
  std::map<int, int> busy;
  int again = 0;
  std::vector<PairMeasure> measures;
  for (int a = 0; a < 20; ++a)
    measures.push_back({.pair = {a, a + 20}, .gb_s = a < 12 ? 1.0 : 10.0, .latency_us = 20});
  const int slots = repeat_suspects(measures, {.repeats = 3}, 0, [&](const Slot& slot, int) {
    std::set<int> seen;
    std::vector<PairMeasure> got;
    for (const Pair& pair : slot) {
      CHECK(seen.insert(pair.a).second);
      CHECK(seen.insert(pair.b).second);
      got.push_back({.pair = pair, .gb_s = 1, .latency_us = 20});
      ++again;
    }
    return got;
  });
  CHECK(again == 24);
  CHECK(slots == 3);
  CHECK(measures[0].again.size() == 3);
  CHECK(measures[8].again.empty());
  CHECK(measures[15].again.empty());
}

TEST_CASE("pairs: repeats and losses survive the way through a file, which is judged the same") {
  const Flaky cluster{.show = [](const Pair& pair, int, int time) {
    PairMeasure m = touches(pair, 1) && time == 1 ? cut()
                    : touches(pair, 1)            ? lossy(slow())
                                                  : good();
    if (pair.b == 6) m.losses_b = 1;
    return m;
  }};
  const PairReport report = cluster.run();
  const PairReport back = pairs_from_json(pairs_json(report), "x");
  CHECK(back.repeats == report.repeats);
  REQUIRE(back.measures.size() == report.measures.size());
  const auto lines = [](const std::vector<mm::health::Finding>& findings) {
    std::string text;
    for (const auto& f : findings) text += finding_line(f) + "\n";
    return text;
  };
  CHECK(lines(judge_pairs(back, {})) == lines(report.findings));
  CHECK(lines(report.findings).find("F10 n1 on ib0: link comes and goes with every partner") !=
        std::string::npos);
  CHECK(pairs_text(report).find("again cut, 4.000") != std::string::npos);
}

TEST_CASE("pairs: files that are no measurements are refused with the reason") {
  const auto refused = [](const char* text) {
    try {
      pairs_from_json(mm::parse_json(text, "f"), "f");
    } catch (const mm::DataError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK(refused(R"({"members": ["a", "b"], "rails": ["r"], "pairs": [{"a": 1, "b": 0}]})") ==
        "f: pair 1 - 0 on rail 0: expected a < b below 2 and a known rail");
  CHECK(
      refused(R"({"members": ["a", "b"], "rails": ["r"], "pairs": [{"a": 0, "b": 1, "rail": 7}]})")
          .find("known rail") != std::string::npos);
  CHECK(refused(R"({"members": ["a", "b"], "rails": ["r"], "pairs": [{"a": 0, "b": 1}]})")
            .starts_with("f: no measurements of pairs: "));
  CHECK(refused(R"({"members": ["a", "b"], "rails": ["r"],
                    "pairs": [{"a": 0, "b": 1, "gb_s": 1, "losses": [1]}]})")
            .starts_with("f: no measurements of pairs: "));
  CHECK(refused(R"({"members": 3, "rails": [], "pairs": []})").starts_with("f: no measurements"));
  std::string many =
      R"({"members": ["a", "b"], "rails": ["r"], "pairs": [{"a": 0, "b": 1, "gb_s": 1, "again": [)";
  for (int i = 0; i < 1001; ++i) many += std::string(i == 0 ? "" : ",") + R"({"gb_s": 1})";
  CHECK(refused((many + "]}]}").c_str()) == "f: pair 0 - 1: 1001 repeats");
}
