#pragma once
#include <map>
#include <string>
#include <vector>

#include "lib/health/finding.h"
#include "lib/probe/interface_choice.h"
#include "lib/probe/rank_star.h"

namespace mm::probe {

/// Interfaces of this rank that pairs are measured by, as many on every rank and in one order.
struct AgreedRails {
  std::vector<Interface> rails;
  std::string left_out;  ///< what some rank lacks, and why; empty: nothing. The same on all ranks
  /// F09 of nodes without a rail that at least 70 % of the nodes have. The same on all ranks.
  std::vector<health::Finding> missing;
};

/// The judgement alone. `offers` by rank: JSON {"host", "rails": [{"setting", "problem"}]}, no
/// problem: "". `own`: what this rank has, by setting. May leave no rail at all.
AgreedRails judge_rails(const std::vector<std::string>& offers,
                        const std::map<std::string, Interface>& own);

/// Of what each rank was told to measure by (`settings`, each as NCCL_SOCKET_IFNAME; none: the way
/// to rank 0), those that every rank was told and has, in rank 0's order; maybe none. Collective.
AgreedRails agree_on_rails(const std::vector<std::string>& settings, int nodes,
                           const std::string& host, RankStar& star);

}  // namespace mm::probe
