#include "lib/probe/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/health/baseline.h"

namespace mm::probe {
namespace {

using health::Finding;
using health::Level;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

// Numbers of one speed over the nodes that have it.
void compare_speed(std::vector<NodeResult>& nodes, const std::string& key,
                   const FleetOptions& options) {
  std::vector<double> values, deviations;
  for (const NodeResult& node : nodes)
    if (node.facts.contains(key) && node.facts[key].is_number())
      values.push_back(node.facts[key].get<double>());
  if (values.size() < 3) return;
  const double middle = median(values);
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  // 1.4826 turns the median of deviations into a normal distribution's sigma.
  const double margin = std::max(options.tolerance * middle, 3 * 1.4826 * median(deviations));
  for (NodeResult& node : nodes) {
    if (!node.facts.contains(key) || !node.facts[key].is_number()) continue;
    const double value = node.facts[key].get<double>();
    if (value >= middle - margin) continue;
    node.faults.push_back(
        {.level = Level::kBad,
         .code = "F05",
         .where = key,
         .what = "slower than the other nodes",
         .evidence = fmt::format("{:.1f}, {:.0f} % of the median {:.1f} of {} nodes", value,
                                 100 * value / middle, middle, values.size()),
         .action = "exclude the node; compare its clocks and cooling"});
  }
}

// What a key says on most nodes; null if no value has the majority.
Json majority_of(const std::vector<NodeResult>& nodes, const std::string& key, double share) {
  std::map<std::string, size_t> votes;
  size_t voters = 0;
  for (const NodeResult& node : nodes) {
    if (!node.answered) continue;
    ++voters;
    ++votes[node.facts.value(key, Json(nullptr)).dump()];
  }
  for (const auto& [text, count] : votes) {
    if (voters >= 3 && static_cast<double>(count) >= share * static_cast<double>(voters))
      return Json::parse(text);
  }
  return nullptr;
}

// Another kernel reserves a little more or less memory.
bool near(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() &&
         std::abs(a.get<double>() - b.get<double>()) <= 0.01 * std::abs(b.get<double>());
}

void compare_fact(std::vector<NodeResult>& nodes, const std::string& key,
                  const FleetOptions& options) {
  const Json usual = majority_of(nodes, key, options.majority);
  if (usual.is_null()) return;
  const bool version = key.starts_with("version.");
  for (NodeResult& node : nodes) {
    if (!node.answered) continue;
    const Json own = node.facts.value(key, Json(nullptr));
    if (own == usual || near(own, usual)) continue;
    node.faults.push_back({.level = version ? Level::kWarn : Level::kBad,
                           .code = version ? "F52" : "F51",
                           .where = key,
                           .what = "other than on most nodes",
                           .evidence = fmt::format("{}, most have {}", own.dump(), usual.dump()),
                           .action = "exclude the node until it is as the others"});
  }
}

bool own_to_a_node(const std::string& key) { return key.ends_with(".serial"); }

std::string own_text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

}  // namespace

NodeResult node_result(const health::NodeReport& report) {
  NodeResult result{.host = report.host.name, .facts = health::node_facts(report)};
  for (const Finding& finding : report.findings) {
    if (finding.level == Level::kBad || finding.level == Level::kWarn)
      result.faults.push_back(finding);
    result.not_checked += finding.level == Level::kNotChecked ? 1 : 0;
  }
  return result;
}

Json node_result_json(const NodeResult& result) {
  Json faults = Json::array();
  for (const Finding& finding : result.faults) faults.push_back(finding_json(finding));
  return {{"schema", 1},          {"host", result.host},
          {"job", result.job},    {"answered", result.answered},
          {"faults", faults},     {"not_checked", result.not_checked},
          {"facts", result.facts}};
}

NodeResult node_result_from(const Json& json) try {
  NodeResult result{.host = json.at("host"),
                    .job = own_text(json, "job"),
                    .answered = json.value("answered", true)};
  result.not_checked = json.value("not_checked", 0);
  result.facts = json.at("facts");
  if (!result.facts.is_object()) throw DataError("result of {}: facts are no object", result.host);
  for (const Json& one : json.at("faults")) result.faults.push_back(health::finding_from(one));
  return result;
} catch (const Json::exception& error) {
  throw DataError("no result of a node: {}", error.what());
}

void compare_fleet(std::vector<NodeResult>& nodes, const FleetOptions& options) {
  std::vector<std::string> keys;
  for (NodeResult& node : nodes) {
    for (const auto& [key, value] : node.facts.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    if (node.answered) continue;
    node.faults.push_back({.level = Level::kBad,
                           .code = "F07",
                           .where = node.host,
                           .what = "node did not answer",
                           .evidence = "no result within the time",
                           .action = "exclude the node; see whether it is up"});
  }
  for (const std::string& key : keys) {
    if (key.starts_with("speed.")) {
      compare_speed(nodes, key, options);
    } else if (!own_to_a_node(key)) {
      compare_fact(nodes, key, options);
    }
  }
  for (NodeResult& node : nodes) sort_findings(node.faults);
}

std::vector<std::string> FleetReport::bad_hosts() const {
  std::vector<std::string> hosts;
  for (const NodeResult& node : nodes)
    if (any_bad(node.faults)) hosts.push_back(node.host);
  return hosts;
}

}  // namespace mm::probe
