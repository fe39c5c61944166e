#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/health/finding.h"
#include "lib/probe/fleet_links.h"
#include "lib/probe/rank_star.h"

namespace mm::probe {

/// One collective of a fleet, run by processes of its own, one a rank: what a library or a driver
/// does to them, the fleet goes on.
struct CollectiveRun {
  std::string name;     ///< of its report: "nccl-all"
  std::string backend;  ///< "nccl" or "gloo"
  std::string group;    ///< as `mmprobe nccl --group`
};

/// Collective over the star, whose ranks are those of `seat`. The report lies in
/// `links`/NAME.json on rank 0. Returns, on rank 0, what went wrong without one.
std::vector<health::Finding> run_collective(const CollectiveRun& run,
                                            const LinkCheckOptions& options, const RankEnv& seat,
                                            const std::filesystem::path& links, RankStar& star);

/// How one rank's process ended.
struct CollectiveEnd {
  std::string host;
  int code = 0;      ///< -1: killed by a signal, 124: did not end in time
  std::string line;  ///< its last one
};

/// The last line of a log of any length, at most 64 KiB of it; empty without one. Throws IoError.
std::string last_line(const std::filesystem::path& log);

/// What it means that there is no report: nodes that ended by themselves are to blame, unless all
/// did so (then it could not be checked); if all lost their peers, nobody can be named.
std::vector<health::Finding> judge_ends(const std::string& name,
                                        const std::vector<CollectiveEnd>& ends);

}  // namespace mm::probe
