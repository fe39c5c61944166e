#include <fmt/format.h>

#include <algorithm>

#include "lib/base/html.h"
#include "lib/probe/pair_rounds.h"

namespace mm::probe {
namespace {

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
  std::string out = fmt::format("{} members, {} rails, {} pairs in {} slots", report.members.size(),
                                report.rails.size(), report.measures.size(), report.slots);
  if (report.repeats > 0) out += fmt::format(", suspects again in {}", report.repeats);
  out += "\n";
  for (size_t rail = 0; rail < report.rails.size(); ++rail) {
    out += fmt::format("rail {}\n{:<16} {:<16} {:>10} {:>12}\n", report.rails[rail], "member",
                       "member", "GB/s", "latency (us)");
    for (const PairMeasure& m : report.measures) {
      if (m.rail != static_cast<int>(rail)) continue;
      out +=
          fmt::format("{:<16} {:<16} {:>10} {:>12}", report.members[static_cast<size_t>(m.pair.a)],
                      report.members[static_cast<size_t>(m.pair.b)], cell(&m),
                      m.error.empty() ? fmt::format("{:.1f}", m.latency_us) : "-");
      for (size_t i = 0; i < m.again.size(); ++i)
        out += (i == 0 ? "  again " : ", ") + cell(&m.again[i]);
      out += "\n";
    }
  }
  for (const health::Finding& finding : report.findings) out += finding_line(finding) + "\n";
  return out;
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

}  // namespace mm::probe
