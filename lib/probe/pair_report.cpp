#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/html.h"
#include "lib/base/text_escape.h"
#include "lib/probe/pair_rounds.h"

namespace mm::probe {
namespace {

constexpr size_t kMaxMembers = 100'000;

const PairMeasure* find(const PairReport& report, int a, int b, int rail) {
  const Pair pair = a < b ? Pair{a, b} : Pair{b, a};
  for (const PairMeasure& m : report.measures)
    if (m.rail == rail && m.pair == pair) return &m;
  return nullptr;
}

std::string cell(const PairMeasure* m) {
  if (m == nullptr) return ".";
  return m->error.empty() ? fmt::format("{:.3f}", m->gb_s) : "cut";
}

// Green at the best figure of the rail, red at nothing.
std::string colour(const PairMeasure& m, double best) {
  if (!m.error.empty()) return "#444";
  const double share = best > 0 ? std::clamp(m.gb_s / best, 0.0, 1.0) : 0;
  return fmt::format("hsl({:.0f},70%,60%)", 120 * share);
}

std::string heat_map(const PairReport& report, int rail) {
  double best = 0;
  for (const PairMeasure& m : report.measures)
    if (m.rail == rail) best = std::max(best, m.gb_s);
  std::string out = fmt::format("<h2>{}</h2><table><tr><th>GB/s</th>",
                                html_escape(report.rails[static_cast<size_t>(rail)]));
  const int n = static_cast<int>(report.members.size());
  for (const std::string& member : report.members) out += "<th>" + html_escape(member) + "</th>";
  for (int a = 0; a < n; ++a) {
    out += "</tr>\n<tr><th>" + html_escape(report.members[static_cast<size_t>(a)]) + "</th>";
    for (int b = 0; b < n; ++b) {
      const PairMeasure* m = a == b ? nullptr : find(report, a, b, rail);
      if (m == nullptr) {
        out += "<td></td>";
      } else {
        out += fmt::format(
            "<td style=\"background:{}\" title=\"{}\">{}</td>", colour(*m, best),
            html_escape(m->error.empty() ? fmt::format("{:.1f} us", m->latency_us) : m->error),
            cell(m));
      }
    }
  }
  return out + "</tr></table>\n";
}

}  // namespace

std::string pairs_text(const PairReport& report) {
  std::string out =
      fmt::format("{} members, {} rails, {} pairs in {} slots\n", report.members.size(),
                  report.rails.size(), report.measures.size(), report.slots);
  for (size_t rail = 0; rail < report.rails.size(); ++rail) {
    out += fmt::format("rail {}\n{:<16} {:<16} {:>10} {:>12}\n", report.rails[rail], "member",
                       "member", "GB/s", "latency (us)");
    for (const PairMeasure& m : report.measures) {
      if (m.rail != static_cast<int>(rail)) continue;
      out += fmt::format("{:<16} {:<16} {:>10} {:>12}\n",
                         report.members[static_cast<size_t>(m.pair.a)],
                         report.members[static_cast<size_t>(m.pair.b)], cell(&m),
                         m.error.empty() ? fmt::format("{:.1f}", m.latency_us) : "-");
    }
  }
  for (const health::Finding& finding : report.findings) out += finding_line(finding) + "\n";
  return out;
}

Json pairs_json(const PairReport& report) {
  Json pairs = Json::array(), findings = Json::array();
  for (const PairMeasure& m : report.measures) {
    Json one = {{"a", m.pair.a}, {"b", m.pair.b}, {"rail", m.rail}};
    if (m.error.empty()) {
      one["gb_s"] = m.gb_s;
      one["latency_us"] = m.latency_us;
    } else {
      one["error"] = escape_text(m.error);
    }
    pairs.push_back(std::move(one));
  }
  for (const health::Finding& finding : report.findings) findings.push_back(finding_json(finding));
  return {{"schema", 1},           {"members", report.members},
          {"rails", report.rails}, {"slots", report.slots},
          {"pairs", pairs},        {"verdict", any_bad(report.findings) ? "bad" : "good"},
          {"findings", findings}};
}

std::string pairs_html(const PairReport& report) {
  std::string out =
      "<!doctype html><html><head><meta charset=\"utf-8\"><title>mmprobe pairs</title><style>"
      "body{font:14px sans-serif}td,th{padding:3px 6px;text-align:right}td{border-radius:3px}"
      "</style></head><body><h1>Bandwidth between members</h1>\n";
  for (size_t rail = 0; rail < report.rails.size(); ++rail)
    out += heat_map(report, static_cast<int>(rail));
  out += "<ul>";
  for (const health::Finding& finding : report.findings)
    out += "<li>" + html_escape(finding_line(finding)) + "</li>\n";
  return out + "</ul></body></html>\n";
}

PairReport read_pairs(const std::string& file) try {
  const Json json = read_json_file(file);
  PairReport report;
  report.members = json.at("members").get<std::vector<std::string>>();
  report.rails = json.at("rails").get<std::vector<std::string>>();
  if (report.members.size() > kMaxMembers) throw DataError("{}: too many members", file);
  const int members = static_cast<int>(report.members.size());
  for (const Json& one : json.at("pairs")) {
    PairMeasure m{.pair = {one.at("a"), one.at("b")}, .rail = one.value("rail", 0)};
    if (m.pair.a < 0 || m.pair.b <= m.pair.a || m.pair.b >= members || m.rail < 0 ||
        m.rail >= static_cast<int>(report.rails.size()))
      throw DataError("{}: pair {} - {} on rail {}: expected a < b below {} and a known rail", file,
                      m.pair.a, m.pair.b, m.rail, members);
    m.error = one.value("error", "");
    if (m.error.empty()) {
      m.gb_s = one.at("gb_s");
      m.latency_us = one.value("latency_us", 0.0);
    }
    report.measures.push_back(std::move(m));
  }
  return report;
} catch (const Json::exception& error) {
  throw DataError("{}: no measurements of pairs: {}", file, error.what());
}

MeasureSlot replay(const PairReport& recorded) {
  return [recorded](const Slot& slot, int rail) {
    std::vector<PairMeasure> measures;
    for (const Pair& pair : slot) {
      const PairMeasure* found = find(recorded, pair.a, pair.b, rail);
      measures.push_back(found != nullptr
                             ? *found
                             : PairMeasure{.pair = pair, .rail = rail, .error = "not measured"});
    }
    return measures;
  };
}

}  // namespace mm::probe
