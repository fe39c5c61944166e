#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "lib/dist/group.h"
#include "lib/dist/rendezvous.h"

namespace mm::dist {

struct GlooOptions {
  std::string name =
      "data";  ///< equal on all ranks; a name may be used again, in the same order everywhere
  std::chrono::milliseconds timeout{60'000};  ///< of each call, and of connecting
  std::string interface;  ///< network interface for the connections; empty: the one with the route
                          ///< to rank 0
};

/// All ranks of the rendezvous as a group over TCP. Collective: blocks until all have connected;
/// throws CommError. Of one rank: no sockets, all identities.
///
/// float64, float32, bf16, fp16 and integers. Sums: 2 ranks by Gloo's all-reduce (a + b commutes);
/// more by an exchange of pieces, a local sum in rank order and W broadcasts, 2 n (W-1)/W elements
/// sent per rank, so bits do not depend on sizes or timing. A peer's death is seen at once
/// ("connection closed"), a peer's lateness after the timeout. Unequal sizes can end the process:
/// check the program's list of collectives first. The destructor waits for what is in flight, at
/// most the timeout; after `abort` it does not, and the connections stay until the process ends.
std::unique_ptr<Group> make_gloo_group(const Rendezvous& rendezvous,
                                       const GlooOptions& options = {});

}  // namespace mm::dist
