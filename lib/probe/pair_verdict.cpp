#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/probe/pair_grade.h"

namespace mm::probe {
namespace {

using health::Finding;
using health::Level;

std::string figure(const PairMeasure& m, const Yardstick& y) {
  if (!m.error.empty()) return m.error;
  std::string text =
      fmt::format("{:.3f} GB/s, {:.1f} us; {} {:.3f} GB/s, {:.1f} us", m.gb_s, m.latency_us,
                  y.expected ? "expected" : "others", y.gb_s, y.latency_us);
  if (stalled(m))
    text +=
        fmt::format("; paused for {:.0f} ms, {} segments sent again", m.stall_ms, m.retransmits);
  return text;
}

std::string course_text(const PairMeasure& m) {
  const auto one = [](const PairMeasure& s) {
    if (!s.error.empty()) return std::string("cut");
    return fmt::format("{:.3f} GB/s{}", s.gb_s,
                       stalled(s) ? fmt::format(" with a pause of {:.0f} ms", s.stall_ms) : "");
  };
  std::string text = "measured " + one(m);
  for (const PairMeasure& s : m.again) text += ", then " + one(s);
  return text;
}

// What one member shows on one rail.
struct Member {
  std::vector<const PairMeasure*> bad;
  int good = 0;
  int unstable = 0;    ///< of the bad ones
  int64_t losses = 0;  ///< of its interface's link
  bool sick(size_t least) const { return good == 0 && bad.size() >= least; }
  bool cut() const {
    return std::all_of(bad.begin(), bad.end(),
                       [](const PairMeasure* m) { return !m->error.empty(); });
  }
};

constexpr const char* kCheckRail =
    "exclude the node, or train without this rail; check cable and switch port";

Finding lost_link(const std::string& host, const std::string& rail, int64_t losses) {
  return {
      .level = Level::kBad,
      .code = "F10",
      .where = fmt::format("{} on {}", host, rail),
      .what = "link comes and goes",
      .evidence = fmt::format("the interface lost its link {} times while it was measured", losses),
      .action = kCheckRail,
      .hosts = {host}};
}

struct Fault {
  const char* code;
  std::string where, what, evidence;
  const char* action;
  std::vector<std::string> hosts;
  Level level = Level::kBad;
};

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
  const std::string& member(int index) const { return report_.members[size_t(index)]; }
  const std::string& rail_name(int index) const { return report_.rails[size_t(index)]; }

  void add(Fault fault) {
    findings_.push_back({.level = fault.level,
                         .code = fault.code,
                         .where = std::move(fault.where),
                         .what = std::move(fault.what),
                         .evidence = std::move(fault.evidence),
                         .action = fault.action,
                         .hosts = std::move(fault.hosts)});
  }

  void judge_rail(int rail) {
    const Yardstick y = yardstick(report_.measures, options_, rail);
    std::vector<Member> members(report_.members.size());
    std::vector<const PairMeasure*> suspects;
    for (const PairMeasure& m : report_.measures) {
      if (m.rail != rail) continue;
      const Course course = course_of(m, y, options_);
      if (course != Course::kGood) suspects.push_back(&m);
      count(m, course, members);
    }
    for (size_t i = 0; i < members.size(); ++i) judge_member(members[i], i, y, rail);
    for (const PairMeasure* m : suspects) name_link(*m, y, rail);
  }

  static void count(const PairMeasure& m, Course course, std::vector<Member>& members) {
    for (const int end : {m.pair.a, m.pair.b}) {
      Member& one = members[static_cast<size_t>(end)];
      const auto losses = [&](const PairMeasure& s) {
        return end == m.pair.a ? s.losses_a : s.losses_b;
      };
      one.losses = std::max(one.losses, losses(m));
      for (const PairMeasure& s : m.again) one.losses = std::max(one.losses, losses(s));
      if (course == Course::kGood || course == Course::kOnce) {
        ++one.good;
        continue;
      }
      one.bad.push_back(&m);
      one.unstable += course == Course::kComesAndGoes ? 1 : 0;
    }
  }

  void judge_member(const Member& one, size_t index, const Yardstick& y, int rail) {
    const std::string& host = report_.members[index];
    // The interface itself says that its link went away: no comparison is needed.
    if (one.losses > 0) {
      flapping_.insert({index, rail});
      findings_.push_back(lost_link(host, rail_name(rail), one.losses));
      return;
    }
    // One bad partner alone proves nothing, unless there was only one partner to have.
    if (report_.members.size() == 2 || !one.sick(2)) return;
    if (one.unstable > 0) {
      flapping_.insert({index, rail});
      add({"F10",
           fmt::format("{} on {}", host, rail_name(rail)),
           "link comes and goes with every partner",
           course_text(*one.bad.front()),
           kCheckRail,
           {host}});
      return;
    }
    sick_[index][rail] = figure(*one.bad.front(), y);
    if (one.cut()) cut_.insert({index, rail});
  }

  bool named(int index, int rail) const {
    const auto it = sick_.find(static_cast<size_t>(index));
    return flapping_.contains({static_cast<size_t>(index), rail}) ||
           (it != sick_.end() && it->second.contains(rail));
  }

  void name_link(const PairMeasure& m, const Yardstick& y, int rail) {
    if (named(m.pair.a, rail) || named(m.pair.b, rail)) return;
    const std::string where =
        fmt::format("{} - {} on {}", member(m.pair.a), member(m.pair.b), rail_name(rail));
    const std::vector<std::string> hosts = {member(m.pair.a), member(m.pair.b)};
    const char* action = report_.members.size() == 2
                             ? "test each node with a third one"
                             : "both nodes are good with others: check the switches between them";
    const Course course = course_of(m, y, options_);
    if (course == Course::kOnce) {
      add({"F06", where, "link was slow once, good again", course_text(m),
           "none now; run it again when the nodes are quiet", hosts, Level::kWarn});
    } else if (course == Course::kComesAndGoes) {
      add({"F10", where, "link comes and goes", course_text(m), action, hosts});
    } else {
      add({"F06", where, m.error.empty() ? "link is slow" : "link is cut", figure(m, y), action,
           hosts});
    }
  }

  void name_member(size_t index) {
    const auto it = sick_.find(index);
    if (it == sick_.end()) return;
    const std::string& host = report_.members[index];
    const bool everywhere = it->second.size() == report_.rails.size();
    if (everywhere) {
      bool cut = true;
      for (const auto& [rail, text] : it->second) cut &= cut_.contains({index, rail});
      add({cut ? "F07" : "F06",
           host,
           cut ? "cannot be reached by anyone" : "slow with every partner",
           it->second.begin()->second,
           "exclude the node; check its links",
           {host}});
      return;
    }
    for (const auto& [rail, text] : it->second)
      add({"F06",
           fmt::format("{} on {}", host, rail_name(rail)),
           cut_.contains({index, rail}) ? "rail is cut" : "rail is slow",
           text,
           "exclude the node, or train without this rail; check the cable",
           {host}});
  }

  const PairReport& report_;
  const PairOptions& options_;
  std::map<size_t, std::map<int, std::string>> sick_;
  std::set<std::pair<size_t, int>> cut_, flapping_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> judge_pairs(const PairReport& report, const PairOptions& options) {
  if (report.members.size() < 2) return {health::not_checked("pairs", "one member has no partner")};
  return Judge(report, options).judge();
}

std::vector<Finding> judge_losses(const std::vector<std::string>& members, const std::string& rail,
                                  const std::vector<int64_t>& losses) {
  std::vector<Finding> findings;
  for (size_t i = 0; i < members.size() && i < losses.size(); ++i)
    if (losses[i] > 0) findings.push_back(lost_link(members[i], rail, losses[i]));
  return findings;
}

}  // namespace mm::probe
