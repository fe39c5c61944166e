#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/probe/interface_choice.h"
#include "lib/probe/pair_rounds.h"
#include "lib/probe/rank_star.h"

namespace mm::probe {

struct TransportOptions {
  std::vector<Interface> rails;         ///< of this rank; as many on every rank
  uint64_t bytes = uint64_t{16} << 20;  ///< sent each way
  int pings = 50;
  double timeout_s = 5;  ///< for a pair to meet, and of each step; ten of them for a stream
};

/// Pairs over plain TCP, each over its rail's address at both ends. The star tells addresses and
/// results; it should not run over the rails under test where there is another network. Losses of a
/// rail's link count from the construction on.
class PairTransport {
 public:
  /// Collective. Throws UsageError if ranks have different numbers of rails.
  PairTransport(const TransportOptions& options, RankStar& star);
  /// Collective: every rank calls it with the same slot and gets all results.
  std::vector<PairMeasure> measure(const Slot& slot, int rail);
  /// How often each rank's interface lost its link since the construction. Collective.
  std::vector<int64_t> losses(int rail);

 private:
  int64_t own_losses(int rail) const;
  PairMeasure measure_own(const Pair& pair, int rail);

  TransportOptions options_;
  RankStar& star_;
  std::vector<TcpSocket> listeners_;              ///< by rail
  std::vector<std::string> interfaces_;           ///< by rail, as the kernel names them
  std::vector<int64_t> losses_before_;            ///< by rail
  std::vector<std::vector<std::string>> places_;  ///< by rank and rail: "address port name"
};

/// Both ends of one connection: the caller sends pings and a stream, then receives one. `lead`: the
/// end that begins. Throws CommError.
PairMeasure measure_link(const TcpSocket& socket, bool lead, const TransportOptions& options);

/// Names of members that stand for ranks: the hosts, with "#RANK" where a host has several.
std::vector<std::string> member_names(const std::vector<std::string>& hosts);

/// Each of `settings` as NCCL_SOCKET_IFNAME has it, with warnings logged; without any,
/// NCCL_SOCKET_IFNAME itself, else one rail "default" by `fallback_address`.
std::vector<Interface> choose_rails(const std::vector<std::string>& settings,
                                    const std::string& fallback_address, int nodes);

}  // namespace mm::probe
