#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/text_escape.h"
#include "lib/probe/collective_bench.h"

namespace mm::probe {
namespace {

using health::Finding;
using health::Level;

// A group that is this far below the median of at least three is named.
constexpr double kOutlier = 0.8;

double largest_bus(const BenchGroup& group) {
  return group.rows.empty() ? 0 : group.rows.back().out_of_place.bandwidth.bus_gb_s;
}

std::string label(const BenchReport& report, size_t index) {
  const BenchGroup& group = report.groups[index];
  if (report.groups.size() == 1) return fmt::format("{} ranks", group.ranks.size());
  if (report.group_by == "node") return "node " + group.hosts.front();
  return fmt::format("local rank {}", index);
}

uint64_t wrong_of(const BenchGroup& group) {
  uint64_t wrong = 0;
  for (const BenchRow& row : group.rows)
    wrong += row.out_of_place.wrong + (row.in_place ? row.in_place->wrong : 0);
  return wrong;
}

// A group of several nodes is nobody's fault yet.
std::vector<std::string> only_host(const std::vector<std::string>& hosts) {
  const auto once = once_each(hosts);
  return once.size() == 1 ? once : std::vector<std::string>();
}

Finding slow(const BenchReport& report, size_t group, double expected, const char* of) {
  const double measured = largest_bus(report.groups[group]);
  return {.level = Level::kBad,
          .code = "F06",
          .where = label(report, group),
          .what = "bus bandwidth is low",
          .evidence = fmt::format("{:.2f} GB/s, {:.0f} % of {} {:.2f}", measured,
                                  100 * measured / expected, of, expected),
          .action = "run mmprobe pairs to find the node or link",
          .hosts = only_host(report.groups[group].hosts)};
}

std::string timing_columns(const BenchTiming* timing) {
  if (timing == nullptr) return fmt::format(" {:>9} {:>8} {:>8} {:>6}", "N/A", "N/A", "N/A", "N/A");
  const double us = 1e6 * timing->seconds;
  return fmt::format(" {:>9} {:>8.2f} {:>8.2f} {:>6}",
                     us < 1000 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us),
                     timing->bandwidth.algorithm_gb_s, timing->bandwidth.bus_gb_s, timing->wrong);
}

bool sums(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

std::string rows_text(const BenchReport& report, const BenchGroup& group) {
  const Collective collective = report.options.collective;
  const bool rooted = collective == Collective::kBroadcast || collective == Collective::kReduce;
  std::string out;
  for (const BenchRow& row : group.rows) {
    out += fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7}", row.bytes, row.count, "float",
                       sums(collective) ? "sum" : "none", rooted ? 0 : -1);
    out += timing_columns(&row.out_of_place);
    out += timing_columns(row.in_place ? &*row.in_place : nullptr) + "\n";
  }
  return out;
}

constexpr const char* kHeads =
    "#\n"
    "#                                                            out-of-place                     "
    " "
    " in-place\n"
    "#       size         count      type   redop    root      time    algbw    busbw #wrong      "
    "time    algbw    busbw #wrong\n"
    "#        (B)    (elements)                               (us)   (GB/s)   (GB/s)              "
    "(us)   (GB/s)   (GB/s)\n";

Json timing(const BenchTiming& t) {
  return {{"time_us", 1e6 * t.seconds},
          {"algbw", t.bandwidth.algorithm_gb_s},
          {"busbw", t.bandwidth.bus_gb_s},
          {"wrong", t.wrong}};
}

Json group_json(const BenchReport& report, const BenchGroup& group) {
  Json rows = Json::array();
  for (const BenchRow& row : group.rows)
    rows.push_back({{"op", word(report.options.collective)},
                    {"n", group.ranks.size()},
                    {"size", row.bytes},
                    {"count", row.count},
                    {"out_of_place", timing(row.out_of_place)},
                    {"in_place", row.in_place ? timing(*row.in_place) : Json(nullptr)}});
  Json fit = nullptr;
  if (group.fit) fit = {{"latency_us", group.fit->latency_us}, {"gb_s", group.fit->gb_s}};
  return {{"ranks", group.ranks}, {"hosts", group.hosts}, {"rows", rows}, {"fit", fit}};
}

}  // namespace

std::vector<std::string> once_each(const std::vector<std::string>& hosts) {
  std::vector<std::string> once;
  for (const std::string& host : hosts)
    if (std::find(once.begin(), once.end(), host) == once.end()) once.push_back(host);
  return once;
}

std::vector<Finding> judge_bench(const BenchReport& report) {
  if (!report.failure.empty())
    return {{.level = Level::kBad,
             .code = "F07",
             .where = fmt::format("{} ranks", report.hosts.size()),
             .what = "the collective did not end",
             .evidence = report.failure,
             .action = "see the nodes and links named below; run mmprobe pairs",
             .hosts = only_host(report.hosts)}};
  std::vector<Finding> findings;
  std::vector<double> all;
  for (const BenchGroup& group : report.groups) all.push_back(largest_bus(group));
  std::sort(all.begin(), all.end());
  const double median = all.empty() ? 0 : all[all.size() / 2];
  for (size_t i = 0; i < report.groups.size(); ++i) {
    const BenchGroup& group = report.groups[i];
    const double measured = largest_bus(group);
    const auto expected = report.options.expected_gb_s;
    if (const uint64_t wrong = wrong_of(group); wrong > 0)
      findings.push_back({.level = Level::kBad,
                          .code = "F55",
                          .where = label(report, i),
                          .what = "wrong results",
                          .evidence = fmt::format("{} elements", wrong),
                          .action = "exclude these nodes; run mmprobe node --full on each",
                          .hosts = only_host(group.hosts)});
    if (expected && measured < (1 - report.options.tolerance) * *expected) {
      findings.push_back(slow(report, i, *expected, "the expected"));
    } else if (all.size() >= 3 && measured < kOutlier * median) {
      findings.push_back(slow(report, i, median, "the groups' median"));
    }
  }
  if (!findings.empty()) return findings;
  if (!report.options.check) findings.push_back(health::not_checked("results", "--no-check"));
  if (!report.options.expected_gb_s)
    findings.push_back(
        health::not_checked("bandwidth", "nothing says what to expect; give --expect or --sku"));
  if (findings.empty())
    findings.push_back(health::ok(
        "bandwidth",
        fmt::format("{:.2f} GB/s, expected {:.2f}", all.front(), *report.options.expected_gb_s)));
  return findings;
}

std::string bench_text(const BenchReport& report) {
  const BenchOptions& o = report.options;
  std::string out = fmt::format(
      "# Collective test starting: {} over {}{}{}, {} ranks\n"
      "# minBytes {} maxBytes {} step: {}(factor) warmup iters: {} iters: {} validation: {}\n#\n"
      "# Using devices\n",
      word(o.collective), report.backend, report.version.empty() ? "" : " ", report.version,
      report.hosts.size(), o.min_bytes, o.max_bytes, o.factor, o.warm_up, o.iterations,
      o.check ? 1 : 0);
  for (size_t rank = 0; rank < report.hosts.size(); ++rank)
    out += fmt::format("#  Rank {:>2} Group {:>2} on {} device {}\n", rank,
                       group_of(report.group_by, report.hosts, static_cast<int>(rank)),
                       report.hosts[rank],
                       rank < report.devices.size() ? report.devices[rank] : "unknown");
  for (size_t i = 0; i < report.groups.size(); ++i) {
    const BenchGroup& group = report.groups[i];
    if (report.groups.size() > 1)
      out += fmt::format("#\n# Group {}: {}, ranks {}\n", i, label(report, i),
                         fmt::join(group.ranks, " "));
    out += kHeads + rows_text(report, group);
    if (group.fit)
      out += fmt::format("# Fit: {:.1f} us + size / {:.3f} GB/s\n", group.fit->latency_us,
                         group.fit->gb_s);
  }
  uint64_t wrong = 0;
  for (const BenchGroup& group : report.groups) wrong += wrong_of(group);
  if (report.failure.empty()) {
    out += fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
    out += fmt::format("# Avg bus bandwidth    : {:.6g}\n#\n", report.average_bus_gb_s);
  } else {
    out += "# Nothing was measured\n#\n";
  }
  for (const Finding& finding : report.findings) out += "# " + finding_line(finding) + "\n";
  return out;
}

Json bench_json(const BenchReport& report) {
  Json groups = Json::array(), findings = Json::array();
  for (const BenchGroup& group : report.groups) groups.push_back(group_json(report, group));
  for (const Finding& finding : report.findings) findings.push_back(finding_json(finding));
  const auto expected = report.options.expected_gb_s;
  return {{"schema", 1},
          {"collective", word(report.options.collective)},
          {"backend", report.backend},
          {"version", report.version},
          {"n", report.hosts.size()},
          {"group_by", report.group_by},
          {"hosts", report.hosts},
          {"groups", groups},
          {"average_busbw", report.average_bus_gb_s},
          {"failure", report.failure.empty() ? Json(nullptr) : Json(escape_text(report.failure))},
          {"expected_busbw", expected ? Json(*expected) : Json(nullptr)},
          {"verdict", any_bad(report.findings) ? "bad" : "good"},
          {"findings", findings}};
}

}  // namespace mm::probe
