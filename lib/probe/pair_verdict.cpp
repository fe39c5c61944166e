#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/probe/pair_rounds.h"

namespace mm::probe {
namespace {

using health::Finding;
using health::Level;

enum class Grade { kGood, kSlow, kCut };

// A bad member spoils two measurements and more, so the middle may be bad already: what the better
// quarter reaches is what links can do.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size()))];
}

// What one rail's measurements are held against.
struct Yardstick {
  double gb_s = 0, latency_us = 0;
  bool expected = false;
};

Yardstick yardstick(const PairReport& report, const PairOptions& options, int rail) {
  std::vector<double> rates, latencies;
  for (const PairMeasure& m : report.measures) {
    if (m.rail != rail || !m.error.empty()) continue;
    rates.push_back(m.gb_s);
    latencies.push_back(m.latency_us);
  }
  Yardstick y{quantile(rates, 0.75), quantile(latencies, 0.25), options.expected_gb_s.has_value()};
  if (options.expected_gb_s) y.gb_s = *options.expected_gb_s;
  if (options.expected_latency_us) y.latency_us = *options.expected_latency_us;
  return y;
}

Grade grade(const PairMeasure& m, const Yardstick& y, const PairOptions& options) {
  if (!m.error.empty()) return Grade::kCut;
  if (m.gb_s < (1 - options.tolerance) * y.gb_s) return Grade::kSlow;
  // Microseconds of noise are no fault of a link.
  if (m.latency_us > options.latency_factor * y.latency_us && m.latency_us > y.latency_us + 50)
    return Grade::kSlow;
  return Grade::kGood;
}

std::string figure(const PairMeasure& m, const Yardstick& y) {
  if (!m.error.empty()) return m.error;
  return fmt::format("{:.3f} GB/s, {:.1f} us; {} {:.3f} GB/s, {:.1f} us", m.gb_s, m.latency_us,
                     y.expected ? "expected" : "others", y.gb_s, y.latency_us);
}

struct Member {
  std::vector<const PairMeasure*> bad;
  int good = 0;
  bool sick(size_t least) const { return good == 0 && bad.size() >= least; }
};

Finding bad(const char* code, std::string where, std::string what, std::string evidence,
            const char* action) {
  return {.level = Level::kBad,
          .code = code,
          .where = std::move(where),
          .what = std::move(what),
          .evidence = std::move(evidence),
          .action = action};
}

// Rail by rail: who is bad with every partner, and which pairs are bad though both ends are good.
class Judge {
 public:
  Judge(const PairReport& report, const PairOptions& options)
      : report_(report), options_(options) {}

  std::vector<Finding> judge() {
    for (int rail = 0; rail < static_cast<int>(report_.rails.size()); ++rail) judge_rail(rail);
    for (size_t member = 0; member < report_.members.size(); ++member) name_member(member);
    if (findings_.empty()) {
      findings_.push_back(health::ok(
          "pairs",
          fmt::format("{} pairs, {} members, {} rails, none below the {}", report_.measures.size(),
                      report_.members.size(), report_.rails.size(),
                      options_.expected_gb_s ? "expectation" : "others")));
    }
    return std::move(findings_);
  }

 private:
  void judge_rail(int rail) {
    const Yardstick y = yardstick(report_, options_, rail);
    std::vector<Member> members(report_.members.size());
    std::vector<const PairMeasure*> suspects;
    for (const PairMeasure& m : report_.measures) {
      if (m.rail != rail) continue;
      const bool good = grade(m, y, options_) == Grade::kGood;
      if (!good) suspects.push_back(&m);
      for (const int one : {m.pair.a, m.pair.b}) {
        Member& member = members[static_cast<size_t>(one)];
        if (good) {
          ++member.good;
        } else {
          member.bad.push_back(&m);
        }
      }
    }
    // One bad partner alone proves nothing, unless there was only one partner to have.
    const size_t least = report_.members.size() > 2 ? 2 : 1;
    for (size_t i = 0; i < members.size(); ++i) {
      if (!members[i].sick(least) || report_.members.size() == 2) continue;
      sick_[i][rail] = figure(*members[i].bad.front(), y);
      if (std::all_of(members[i].bad.begin(), members[i].bad.end(),
                      [](const PairMeasure* m) { return !m->error.empty(); }))
        cut_.insert({i, rail});
    }
    for (const PairMeasure* m : suspects) name_link(*m, y, rail);
  }

  bool sick(int member, int rail) const {
    const auto it = sick_.find(static_cast<size_t>(member));
    return it != sick_.end() && it->second.contains(rail);
  }

  void name_link(const PairMeasure& m, const Yardstick& y, int rail) {
    if (sick(m.pair.a, rail) || sick(m.pair.b, rail)) return;
    findings_.push_back(
        bad("F06",
            fmt::format("{} - {} on {}", report_.members[static_cast<size_t>(m.pair.a)],
                        report_.members[static_cast<size_t>(m.pair.b)],
                        report_.rails[static_cast<size_t>(rail)]),
            m.error.empty() ? "link is slow" : "link is cut", figure(m, y),
            report_.members.size() == 2
                ? "test each node with a third one"
                : "both nodes are good with others: check the switches between them"));
  }

  void name_member(size_t member) {
    const auto it = sick_.find(member);
    if (it == sick_.end()) return;
    const std::string& host = report_.members[member];
    const bool everywhere = it->second.size() == report_.rails.size();
    if (everywhere) {
      bool cut = true;
      for (const auto& [rail, text] : it->second) cut &= cut_.contains({member, rail});
      findings_.push_back(bad(cut ? "F07" : "F06", host,
                              cut ? "cannot be reached by anyone" : "slow with every partner",
                              it->second.begin()->second, "exclude the node; check its links"));
      return;
    }
    for (const auto& [rail, text] : it->second)
      findings_.push_back(
          bad("F06", fmt::format("{} on {}", host, report_.rails[static_cast<size_t>(rail)]),
              cut_.contains({member, rail}) ? "rail is cut" : "rail is slow", text,
              "exclude the node, or train without this rail; check the cable"));
  }

  const PairReport& report_;
  const PairOptions& options_;
  std::map<size_t, std::map<int, std::string>> sick_;
  std::set<std::pair<size_t, int>> cut_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> judge_pairs(const PairReport& report, const PairOptions& options) {
  if (report.members.size() < 2) return {health::not_checked("pairs", "one member has no partner")};
  return Judge(report, options).judge();
}

}  // namespace mm::probe
