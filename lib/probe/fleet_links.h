#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/rank_env.h"
#include "lib/probe/fleet.h"
#include "lib/probe/pair_transport.h"

namespace mm::probe {

/// What `fleet` checks between its nodes, after each of them has been probed by itself.
struct LinkCheckOptions {
  bool pairs = true, collectives = true;
  PairOptions judge;
  TransportOptions transport;           ///< without rails
  std::vector<std::string> rails;       ///< each as NCCL_SOCKET_IFNAME
  std::string program;                  ///< this one, which runs the collectives as `PROGRAM nccl`
  std::string kind;                     ///< its --sku
  std::string backend = "auto";         ///< or "nccl", "gloo"
  uint64_t bytes = uint64_t{16} << 20;  ///< of a collective
  std::optional<double> expected_gb_s;  ///< bus bandwidth between all ranks
  double timeout_s = 60;                ///< for ranks to meet
  double collective_timeout_s = 180;    ///< of one collective, then its processes are ended
};

/// What a rank can run a collective with.
struct BackendSupport {
  bool nccl = false, gloo = false;
  std::string why_not;  ///< neither
};

/// Measures pairs (one rank a node) and the collective among the ranks of `seat`; collective over
/// them. What comes of it lies in `directory`/links on rank 0: pairs.json, nccl-all.json,
/// nccl-node.json. What cannot be run is in notes.json as findings. Throws CommError if the ranks
/// do not meet.
void run_link_checks(const LinkCheckOptions& options, const RankEnv& seat,
                     const BackendSupport& support, const std::filesystem::path& directory);

/// Deletes what an earlier start left there, and nothing else.
void forget_link_checks(const std::filesystem::path& directory);

/// Reads what run_link_checks left, here or in a recorded directory, into `report`; pairs are
/// judged again. Throws DataError naming the file.
void read_link_checks(const std::filesystem::path& directory, const PairOptions& judge,
                      FleetReport& report);

/// Puts each of report.links' faults to the node it is about. A link between two nodes counts
/// against one of them, chosen so that as few nodes as can be are bad, as a warning for the other.
/// What names no node, or all, stays.
void charge_links(FleetReport& report);

}  // namespace mm::probe
