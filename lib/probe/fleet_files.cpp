#include <poll.h>

#include <cmath>
#include <fstream>
#include <set>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/probe/fleet.h"

namespace mm::probe {
namespace {

constexpr uint64_t kMaxResultBytes = uint64_t{64} << 20;

std::filesystem::path result_file(const std::filesystem::path& directory, const std::string& host) {
  return directory / (host + ".json");
}

// The host's result, if it is there and of this job.
std::optional<NodeResult> find_result(const std::filesystem::path& directory,
                                      const std::string& host, const std::string& job) {
  const auto file = result_file(directory, host);
  if (!std::filesystem::exists(file)) return std::nullopt;
  NodeResult result = node_result_from(parse_json(read_file(file, kMaxResultBytes), file.string()));
  if (!job.empty() && result.job != job) return std::nullopt;
  result.host = host;
  return result;
}

}  // namespace

void leave_result(const std::filesystem::path& directory, const NodeResult& result) {
  std::filesystem::create_directories(directory);
  write_file_atomic(result_file(directory, result.host), node_result_json(result).dump() + "\n");
}

std::vector<NodeResult> collect_results(const std::filesystem::path& directory,
                                        const std::vector<std::string>& hosts, double timeout_s,
                                        const std::string& job) {
  const double until_s = system_clock().monotonic_s() + timeout_s;
  std::map<std::string, NodeResult> found;
  while (true) {
    for (const std::string& host : hosts) {
      if (found.contains(host)) continue;
      if (auto result = find_result(directory, host, job)) found.emplace(host, std::move(*result));
    }
    if (found.size() >= std::set<std::string>(hosts.begin(), hosts.end()).size() ||
        system_clock().monotonic_s() >= until_s)
      break;
    ::poll(nullptr, 0, 100);  // a shared file system tells nobody of new files
  }
  std::vector<NodeResult> results;
  for (const std::string& host : hosts) {
    const auto it = found.find(host);
    results.push_back(it != found.end() ? it->second : NodeResult{.host = host, .answered = false});
  }
  return results;
}

void append_history(const std::filesystem::path& file, const FleetReport& report) {
  std::string lines;
  for (const NodeResult& node : report.nodes) {
    std::set<std::string> codes;
    for (const health::Finding& finding : node.faults) codes.insert(finding.code);
    lines += Json{{"time_unix_ms", report.unix_ms},
                  {"host", node.host},
                  {"bad", any_bad(node.faults)},
                  {"codes", codes}}
                 .dump() +
             "\n";
  }
  // One write at the end of the file: lines of two runs do not mix.
  File out = File::create(file, /*append=*/true);
  out.write(lines);
  out.sync();
}

std::map<std::string, double> lemon_scores(const std::filesystem::path& file, int64_t now_unix_ms) {
  constexpr double kHalfLifeMs = 7.0 * 24 * 3600 * 1000;
  std::map<std::string, double> scores;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("host") || !json["host"].is_string() ||
        !json.contains("time_unix_ms") || !json["time_unix_ms"].is_number())
      continue;
    const double age_ms =
        std::max(0.0, static_cast<double>(now_unix_ms) - json["time_unix_ms"].get<double>());
    const Json codes = json.value("codes", Json::array());
    const double weight = json.value("bad", false) ? 1 : codes.empty() ? 0 : 0.2;
    scores[json["host"].get<std::string>()] += weight * std::exp2(-age_ms / kHalfLifeMs);
  }
  return scores;
}

}  // namespace mm::probe
