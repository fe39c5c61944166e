#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/finding.h"
#include "lib/health/node_report.h"

namespace mm::probe {

/// What one node says to the fleet: its own findings that are faults, what it is, what it measured.
struct NodeResult {
  std::string host;
  std::string job;  ///< the start that left it; results of an earlier one do not count
  bool answered = true;
  std::vector<health::Finding> faults;  ///< kBad and kWarn
  int not_checked = 0;
  Json facts = Json::object();  ///< node_facts
};

NodeResult node_result(const health::NodeReport& report);
Json node_result_json(const NodeResult& result);
/// Throws DataError.
NodeResult node_result_from(const Json& json);

struct FleetOptions {
  double tolerance = 0.05;  ///< a measurement so far below the median (or 3 deviations) is bad
  double majority = 0.7;    ///< a fact that so many share is what the others should be
};

struct FleetReport {
  int64_t unix_ms = 0;
  std::vector<NodeResult> nodes;
  std::map<std::string, double> lemon_scores;  ///< by host; from the history
  /// Of the checks between nodes: what is no single node's, what was good, what was not checked.
  std::vector<health::Finding> links;
  Json pairs = nullptr;               ///< as pairs_json; null: not measured
  Json collectives = Json::object();  ///< by name, as bench_json
  bool healthy() const { return bad_hosts().empty() && !any_bad(links); }
  std::vector<std::string> bad_hosts() const;  ///< in the nodes' order
};

/// Adds what only the comparison shows: speeds below the median (F05), facts that differ from the
/// majority's (F51; versions F52 as warnings), hosts that did not answer (F07).
/// A node of 10 % less is found if the others differ by less than about 3 %.
void compare_fleet(std::vector<NodeResult>& nodes, const FleetOptions& options);

std::string fleet_text(const FleetReport& report);
Json fleet_json(const FleetReport& report);
/// "--exclude=n3,n7"; empty if all are good.
std::string exclude_option(const FleetReport& report);
/// One `scontrol update` line for every bad node, with the worst finding as the reason.
std::vector<std::string> drain_lines(const FleetReport& report);

/// A directory in which every node leaves HOST.json, and one waits for all of them.
void leave_result(const std::filesystem::path& directory, const NodeResult& result);
/// Waits up to `timeout_s` for the hosts' files of this job (empty: of any); hosts without one have
/// answered = false.
std::vector<NodeResult> collect_results(const std::filesystem::path& directory,
                                        const std::vector<std::string>& hosts, double timeout_s,
                                        const std::string& job = "");

/// Appends one JSON line a node: {"time_unix_ms", "host", "bad", "codes"}; lines already there
/// stay.
void append_history(const std::filesystem::path& file, const FleetReport& report);
/// Score of a host from its lines: 1 for every bad run and 0.2 for every run with warnings, halved
/// every 7 days; 3 and more is a lemon. Broken lines are left out.
std::map<std::string, double> lemon_scores(const std::filesystem::path& file, int64_t now_unix_ms);

}  // namespace mm::probe
