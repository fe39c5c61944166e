#include "lib/health/baseline.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::health {
namespace {

// Counters whose growth is a fault, by the end of their name. `least`: growth that counts.
struct Growth {
  const char* suffix;
  const char* code;
  Level level;
  uint64_t least;
};
constexpr std::array kGrowths = {
    Growth{".link_downed", "F10", Level::kBad, 3},
    Growth{".carrier_downs", "F10", Level::kBad, 3},
    Growth{".ecc_uncorrected", "F15", Level::kBad, 1},
    Growth{".uncorrected", "F50", Level::kBad, 1},
    Growth{".fatal", "F49", Level::kBad, 1},
    Growth{".crc_errors", "F12", Level::kWarn, 1},
    Growth{".recoveries", "F12", Level::kWarn, 1},
    Growth{".symbol_error", "F49", Level::kWarn, 10},
    Growth{".link_error_recovery", "F49", Level::kWarn, 2},
    Growth{".local_link_integrity_errors", "F49", Level::kWarn, 2},
    Growth{".port_rcv_errors", "F49", Level::kWarn, 10},
    Growth{".excessive_buffer_overrun_errors", "F49", Level::kWarn, 2}};

const Growth* growth_of(const std::string& counter) {
  for (const Growth& one : kGrowths)
    if (counter.ends_with(one.suffix)) return &one;
  return nullptr;
}

void compare_fact(const std::string& key, const Json& was, const Json& is, double tolerance,
                  std::vector<Finding>& findings) {
  Finding finding{.level = Level::kBad,
                  .code = key.starts_with("version.") ? "F52" : "F51",
                  .where = key,
                  .what = "changed since the baseline",
                  .evidence = fmt::format("{}, was {}", is.dump(), was.dump()),
                  .action = "exclude the node if nobody changed it; else learn a new baseline"};
  if (key.starts_with("speed.")) {
    if (!was.is_number() || !is.is_number() ||
        is.get<double>() >= (1 - tolerance) * was.get<double>())
      return;
    finding.code = "F56";
    finding.what = "slower than the baseline";
    finding.evidence = fmt::format("{:.1f}, {:.0f} % of {:.1f}", is.get<double>(),
                                   100 * is.get<double>() / was.get<double>(), was.get<double>());
    finding.action = "exclude the node; compare with its neighbours";
  } else if (was == is) {
    return;
  } else if (key.starts_with("version.") || key.starts_with("host.memory_bytes")) {
    // Kernels reserve a little more or less; versions are changed on purpose.
    finding.level = Level::kWarn;
    if (was.is_number() && is.is_number() && is.get<double>() > 0.99 * was.get<double>()) return;
  }
  findings.push_back(std::move(finding));
}

void compare_counters(const Json& before, const Json& now, int64_t since_ms,
                      std::vector<Finding>& findings) {
  for (const auto& [key, was] : before.items()) {
    const Json is = now.value(key, Json(nullptr));
    if (!was.is_number_unsigned() || !is.is_number()) continue;
    for (Finding& finding : judge_growth(key, was.get<uint64_t>(), is.get<uint64_t>())) {
      finding.what = "rose since the baseline";
      finding.since_unix_ms = since_ms;
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace

std::vector<Finding> judge_growth(const std::string& counter, uint64_t was, uint64_t is) {
  const Growth* growth = growth_of(counter);
  // A counter that went back was reset with its driver.
  const uint64_t rise = is >= was ? is - was : is;
  if (growth == nullptr || rise < growth->least) return {};
  return {{.level = growth->level,
           .code = growth->code,
           .where = counter,
           .what = "rose",
           .evidence = fmt::format("{}, was {}", is, was),
           .action = growth->level == Level::kBad ? "exclude the node; check the part"
                                                  : "watch whether it goes on rising"}};
}

void learn_baseline(const NodeReport& report, const std::filesystem::path& file) {
  const Json json = {{"schema", 1},
                     {"kind", "mmprobe-baseline"},
                     {"host", report.host.name},
                     {"time_unix_ms", report.unix_ms},
                     {"facts", node_facts(report)},
                     {"counters", node_counters(report)}};
  write_file_atomic(file, json.dump(2) + "\n");
}

std::vector<Finding> compare_baseline(const NodeReport& report, const std::filesystem::path& file,
                                      double tolerance) {
  const Json baseline = read_json_file(file);
  if (!baseline.is_object() || baseline.value("kind", "") != "mmprobe-baseline" ||
      !baseline.contains("facts") || !baseline["facts"].is_object() ||
      !baseline.contains("counters") || !baseline["counters"].is_object())
    throw DataError("{}: no baseline of mmprobe; make one with mmprobe node --learn",
                    file.string());
  if (baseline.value("schema", 0) != 1)
    throw DataError("{}: baseline of another schema; learn it again", file.string());
  std::vector<Finding> findings;
  const Json facts = node_facts(report), counters = node_counters(report);
  const int64_t since_ms = baseline.value("time_unix_ms", int64_t{0});
  const bool same_host = baseline.value("host", "") == report.host.name;
  for (const auto& [key, was] : baseline["facts"].items()) {
    // Serial numbers are one node's; a measured speed is absent without --full.
    if ((key.ends_with(".serial") && !same_host) ||
        (key.starts_with("speed.") && !facts.contains(key)))
      continue;
    compare_fact(key, was, facts.value(key, Json(nullptr)), tolerance, findings);
  }
  // Another node's counters say nothing about this one's.
  if (same_host) compare_counters(baseline["counters"], counters, since_ms, findings);
  if (findings.empty()) findings.push_back(ok("baseline", "as learned " + iso_time(since_ms)));
  return findings;
}

}  // namespace mm::health
