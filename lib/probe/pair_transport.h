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
  double timeout_s = 5;  ///< for a pair to meet, and of each step
};

/// Pairs over plain TCP, each over its rail's address at both ends. The star tells addresses and
/// results; it should not run over the rails under test where there is another network.
class PairTransport {
 public:
  /// Collective. Throws UsageError if ranks have different numbers of rails.
  PairTransport(const TransportOptions& options, RankStar& star);
  /// Collective: every rank calls it with the same slot and gets all results.
  std::vector<PairMeasure> measure(const Slot& slot, int rail);

 private:
  PairMeasure measure_own(const Pair& pair, int rail);

  TransportOptions options_;
  RankStar& star_;
  std::vector<TcpSocket> listeners_;              ///< by rail
  std::vector<std::vector<std::string>> places_;  ///< by rank and rail: "address port name"
};

/// Both ends of one connection: the caller sends pings and a stream, then receives one. `lead`: the
/// end that begins. Throws CommError.
PairMeasure measure_link(const TcpSocket& socket, bool lead, const TransportOptions& options);

}  // namespace mm::probe
