#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/clock.h"
#include "lib/base/text_escape.h"
#include "lib/probe/fleet.h"

namespace mm::probe {
namespace {

constexpr double kLemon = 3;

double score_of(const FleetReport& report, const std::string& host) {
  const auto it = report.lemon_scores.find(host);
  return it == report.lemon_scores.end() ? 0 : it->second;
}

// Inside double quotes of a shell: nothing that it would read.
std::string shell_text(const std::string& text) {
  std::string out;
  for (const char c : escape_text(text, 160))
    out += c == '"' || c == '\\' || c == '$' || c == '`' ? '\'' : c;
  return out;
}

}  // namespace

std::string exclude_option(const FleetReport& report) {
  const auto bad = report.bad_hosts();
  return bad.empty() ? "" : fmt::format("--exclude={}", fmt::join(bad, ","));
}

std::vector<std::string> drain_lines(const FleetReport& report) {
  std::vector<std::string> lines;
  for (const NodeResult& node : report.nodes) {
    if (!any_bad(node.faults)) continue;
    const health::Finding& worst = node.faults.front();
    lines.push_back(fmt::format(
        "scontrol update NodeName={} State=DRAIN Reason=\"{}\"", node.host,
        shell_text(fmt::format("mmprobe {} {}: {}", worst.code, worst.where, worst.what))));
  }
  return lines;
}

std::string fleet_text(const FleetReport& report) {
  std::string out = fmt::format("{:<20} {:<8} {:>6} {:>5} {:>12} {:>6}\n", "node", "verdict", "bad",
                                "warn", "not checked", "lemon");
  for (const NodeResult& node : report.nodes) {
    int bad = 0, warn = 0;
    for (const health::Finding& f : node.faults) ++(f.level == health::Level::kBad ? bad : warn);
    const double score = score_of(report, node.host);
    out += fmt::format("{:<20} {:<8} {:>6} {:>5} {:>12} {:>6.1f}{}\n", node.host,
                       bad > 0 ? "BAD" : "good", bad, warn, node.not_checked, score,
                       score >= kLemon ? " LEMON" : "");
  }
  for (const NodeResult& node : report.nodes)
    for (const health::Finding& finding : node.faults)
      out += fmt::format("{}: {}\n", node.host, finding_line(finding));
  for (const health::Finding& finding : report.links)
    out += fmt::format("links: {}\n", finding_line(finding));
  if (report.healthy())
    return out + fmt::format("verdict all {} nodes good, as far as checked\n", report.nodes.size());
  if (const std::string option = exclude_option(report); !option.empty()) out += option + "\n";
  for (const std::string& line : drain_lines(report)) out += line + "\n";
  return out + fmt::format("verdict {} of {} nodes BAD{}\n", report.bad_hosts().size(),
                           report.nodes.size(),
                           any_bad(report.links) ? ", and what joins them" : "");
}

Json fleet_json(const FleetReport& report) {
  Json nodes = Json::array(), links = Json::array();
  for (const health::Finding& finding : report.links) links.push_back(finding_json(finding));
  for (const NodeResult& node : report.nodes) {
    Json one = node_result_json(node);
    one.erase("schema");
    one["verdict"] = any_bad(node.faults) ? "bad" : "good";
    one["lemon_score"] = score_of(report, node.host);
    nodes.push_back(std::move(one));
  }
  return {{"schema", 1},
          {"time", iso_time(report.unix_ms)},
          {"verdict", report.healthy() ? "good" : "bad"},
          {"exclude", report.bad_hosts()},
          {"drain", drain_lines(report)},
          {"nodes", nodes},
          {"links", links},
          {"pairs", report.pairs},
          {"collectives", report.collectives}};
}

}  // namespace mm::probe
