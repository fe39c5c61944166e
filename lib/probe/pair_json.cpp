#include <map>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/probe/pair_rounds.h"

namespace mm::probe {
namespace {

constexpr size_t kMaxMembers = 100'000;
constexpr size_t kMaxRepeats = 1000;

Json sample_json(const PairMeasure& m) {
  Json one = Json::object();
  if (m.error.empty()) {
    one["gb_s"] = m.gb_s;
    one["latency_us"] = m.latency_us;
    one["stall_ms"] = m.stall_ms;
    one["retransmits"] = m.retransmits;
  } else {
    one["error"] = escape_text(m.error);
  }
  if (m.losses_a + m.losses_b > 0) one["losses"] = {m.losses_a, m.losses_b};
  return one;
}

Json measure_json(const PairMeasure& m) {
  Json one = {{"a", m.pair.a}, {"b", m.pair.b}, {"rail", m.rail}};
  one.update(sample_json(m));
  if (m.again.empty()) return one;
  one["again"] = Json::array();
  for (const PairMeasure& sample : m.again) one["again"].push_back(sample_json(sample));
  return one;
}

void read_sample(const Json& one, PairMeasure& m) {
  m.error = one.value("error", "");
  if (m.error.empty()) {
    m.gb_s = one.at("gb_s");
    m.latency_us = one.value("latency_us", 0.0);
    m.stall_ms = one.value("stall_ms", 0.0);
    m.retransmits = one.value("retransmits", int64_t{0});
  }
  if (!one.contains("losses")) return;
  m.losses_a = one["losses"].at(0);
  m.losses_b = one["losses"].at(1);
}

PairMeasure measure_from(const Json& one, const PairReport& report, const std::string& origin) {
  PairMeasure m{.pair = {one.at("a"), one.at("b")}, .rail = one.value("rail", 0)};
  const int members = static_cast<int>(report.members.size());
  if (m.pair.a < 0 || m.pair.b <= m.pair.a || m.pair.b >= members || m.rail < 0 ||
      m.rail >= static_cast<int>(report.rails.size()))
    throw DataError("{}: pair {} - {} on rail {}: expected a < b below {} and a known rail", origin,
                    m.pair.a, m.pair.b, m.rail, members);
  read_sample(one, m);
  const Json again = one.value("again", Json::array());
  if (again.size() > kMaxRepeats)
    throw DataError("{}: pair {} - {}: {} repeats", origin, m.pair.a, m.pair.b, again.size());
  for (const Json& sample : again) {
    m.again.push_back({.pair = m.pair, .rail = m.rail});
    read_sample(sample, m.again.back());
  }
  return m;
}

}  // namespace

Json pairs_json(const PairReport& report) {
  Json pairs = Json::array(), findings = Json::array();
  for (const PairMeasure& m : report.measures) pairs.push_back(measure_json(m));
  for (const health::Finding& finding : report.findings) findings.push_back(finding_json(finding));
  return {{"schema", 1},
          {"members", report.members},
          {"rails", report.rails},
          {"slots", report.slots},
          {"repeats", report.repeats},
          {"pairs", pairs},
          {"verdict", any_bad(report.findings) ? "bad" : "good"},
          {"findings", findings}};
}

PairReport pairs_from_json(const Json& json, const std::string& origin) try {
  PairReport report;
  report.members = json.at("members").get<std::vector<std::string>>();
  report.rails = json.at("rails").get<std::vector<std::string>>();
  report.slots = json.value("slots", 0);
  report.repeats = json.value("repeats", 0);
  if (report.members.size() > kMaxMembers) throw DataError("{}: too many members", origin);
  for (const Json& one : json.at("pairs"))
    report.measures.push_back(measure_from(one, report, origin));
  return report;
} catch (const Json::exception& error) {
  throw DataError("{}: no measurements of pairs: {}", origin, error.what());
}

PairReport read_pairs(const std::string& file) {
  return pairs_from_json(read_json_file(file), file);
}

MeasureSlot replay(const PairReport& recorded) {
  // By rail and pair: a search in a list of all pairs would be slow for large matrices.
  std::map<std::tuple<int, int, int>, PairMeasure> known;
  for (const PairMeasure& m : recorded.measures)
    known.emplace(std::make_tuple(m.rail, m.pair.a, m.pair.b), m);
  return [known = std::move(known)](const Slot& slot, int rail) {
    std::vector<PairMeasure> measures;
    for (const Pair& pair : slot) {
      const auto found = known.find({rail, pair.a, pair.b});
      measures.push_back(found != known.end()
                             ? found->second
                             : PairMeasure{.pair = pair, .rail = rail, .error = "not measured"});
    }
    return measures;
  };
}

}  // namespace mm::probe
