#include "lib/probe/fleet_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/probe/fleet_collective.h"
#include "lib/probe/fleet_rails.h"

namespace mm::probe {
namespace {

using health::Finding;

// The first rank of each node, which measures pairs.
std::vector<int> leads_of(const RankEnv& seat) {
  std::vector<int> leads;
  int rank = 0;
  for (const int count : seat.ranks_per_node) {
    leads.push_back(rank);
    rank += count;
  }
  return leads;
}

// `notes` gets which rails were left out, and who lacks one that most have, also where measuring
// fails.
void check_pairs(const LinkCheckOptions& options, const RankEnv& seat,
                 const std::filesystem::path& links, RankStar& star, std::vector<Finding>& notes) {
  const AgreedRails agreed =
      agree_on_rails(options.rails, static_cast<int>(seat.hosts.size()), seat.host, star);
  notes = agreed.missing;
  if (agreed.rails.empty()) throw CommError("no rail that all have: {}", agreed.left_out);
  if (!agreed.left_out.empty())
    notes.push_back(health::not_checked("pairs", "rails left out: " + agreed.left_out));
  TransportOptions transport = options.transport;
  transport.rails = agreed.rails;
  PairTransport pairs(transport, star);
  const std::vector<int> leads = leads_of(seat);
  std::vector<std::string> names;
  for (const Interface& rail : transport.rails) names.push_back(rail.name);
  const auto measure = [&](const Slot& slot, int rail) {
    Slot ranks;
    for (const Pair& pair : slot)
      ranks.push_back({leads[static_cast<size_t>(pair.a)], leads[static_cast<size_t>(pair.b)]});
    auto measures = pairs.measure(ranks, rail);
    for (size_t i = 0; i < measures.size(); ++i) measures[i].pair = slot[i];
    return measures;
  };
  const PairReport report = run_pairs(seat.hosts, names, options.judge, measure);
  if (star.rank() == 0) write_file_atomic(links / "pairs.json", pairs_json(report).dump(2) + "\n");
}

// What all nodes can run; empty, with the reason in `why_not`, if there is nothing.
std::string agreed_backend(const LinkCheckOptions& options, const RankEnv& seat,
                           const BackendSupport& own, RankStar& star, std::string& why_not) {
  const auto all =
      star.all_gather(Json{{"nccl", own.nccl}, {"gloo", own.gloo}, {"why", own.why_not}}.dump());
  bool nccl = true, gloo = true;
  for (const int lead : leads_of(seat)) {
    const Json json = parse_json(all[static_cast<size_t>(lead)], "support of a rank");
    nccl &= json.at("nccl").get<bool>();
    gloo &= json.at("gloo").get<bool>();
    if (why_not.empty()) why_not = json.at("why");
  }
  if (options.backend != "auto") return options.backend;
  if (nccl) return "nccl";
  if (gloo) return "gloo";
  if (why_not.empty()) why_not = "no backend that all nodes have";
  return "";
}

std::vector<Finding> check_collectives(const LinkCheckOptions& options, const RankEnv& seat,
                                       const BackendSupport& support,
                                       const std::filesystem::path& links, RankStar& star) {
  std::string why_not;
  const std::string backend = agreed_backend(options, seat, support, star, why_not);
  if (backend.empty()) return {health::not_checked("collectives", why_not)};
  const bool many = std::all_of(seat.ranks_per_node.begin(), seat.ranks_per_node.end(),
                                [](int ranks) { return ranks > 1; });
  std::vector<Finding> findings;
  const auto run = [&](const char* name, const char* group) {
    auto found = run_collective({name, backend, group}, options, seat, links, star);
    findings.insert(findings.end(), found.begin(), found.end());
  };
  if (many) run("nccl-node", "node");
  if (seat.hosts.size() > 1) run("nccl-all", "all");
  return findings;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) json.push_back(finding_json(finding));
  return json;
}

void read_findings(const Json& json, const std::string& origin,
                   std::vector<Finding>& findings) try {
  for (const Json& one : json) findings.push_back(health::finding_from(one));
} catch (const Error& error) {
  throw DataError("{}: {}", origin, error.what());
}

}  // namespace

void run_link_checks(const LinkCheckOptions& options, const RankEnv& seat,
                     const BackendSupport& support, const std::filesystem::path& directory) {
  const auto links = directory / "links";
  RankStar star = RankStar::join(seat, {.directory = links, .timeout_s = options.timeout_s});
  std::vector<Finding> notes;
  if (options.pairs && seat.hosts.size() > 1) {
    try {
      check_pairs(options, seat, links, star, notes);
    } catch (const CommError& error) {
      notes.push_back(health::not_checked("pairs", error.what()));
    }
  } else if (options.pairs) {
    notes.push_back(health::not_checked("pairs", "one node has no partner"));
  }
  if (options.collectives && seat.world > 1) {
    for (Finding& finding : check_collectives(options, seat, support, links, star))
      notes.push_back(std::move(finding));
  } else if (options.collectives) {
    notes.push_back(health::not_checked("collectives", "one rank has no partner"));
  }
  if (star.rank() == 0) write_file_atomic(links / "notes.json", findings_json(notes).dump() + "\n");
}

void forget_link_checks(const std::filesystem::path& directory) {
  const auto links = directory / "links";
  if (!std::filesystem::is_directory(links)) return;
  std::vector<std::filesystem::path> ours;
  for (const auto& entry : std::filesystem::directory_iterator(links)) {
    const std::string name = entry.path().filename().string();
    if (name == "plan.json" || name == "pairs.json" || name == "notes.json" ||
        name.starts_with("nccl-all.") || name.starts_with("nccl-node."))
      ours.push_back(entry.path());
  }
  for (const auto& file : ours) std::filesystem::remove(file);
}

void read_link_checks(const std::filesystem::path& directory, const PairOptions& judge,
                      FleetReport& report) {
  const auto links = directory / "links";
  if (const auto file = links / "pairs.json"; std::filesystem::exists(file)) {
    report.pairs = read_json_file(file);
    for (Finding& finding : judge_pairs(pairs_from_json(report.pairs, file.string()), judge))
      report.links.push_back(std::move(finding));
  }
  for (const char* name : {"nccl-node", "nccl-all"}) {
    const auto file = links / (std::string(name) + ".json");
    if (!std::filesystem::exists(file)) continue;
    const Json json = read_json_file(file);
    if (!json.is_object() || !json.contains("findings"))
      throw DataError("{}: no report of a collective", file.string());
    report.collectives[name] = json;
    read_findings(json["findings"], file.string(), report.links);
  }
  if (const auto file = links / "notes.json"; std::filesystem::exists(file))
    read_findings(read_json_file(file), file.string(), report.links);
}

}  // namespace mm::probe
