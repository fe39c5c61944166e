#pragma once
#include <memory>

#include "lib/probe/collective_backend.h"
#include "lib/probe/rank_star.h"

namespace mm::probe {

struct GlooBackendOptions {
  std::vector<int> members;  ///< ranks of the world, this one among them
  std::string address;       ///< of this rank, by which its peers reach it
  double timeout_s = 60;     ///< of connecting and of each call
};

/// PyTorch's Gloo backend over TCP, buffers in host memory. Collective over the whole star: a store
/// on rank 0 serves all groups.
std::unique_ptr<CollectiveBackend> make_gloo_backend(const GlooBackendOptions& options,
                                                     RankStar& star);

}  // namespace mm::probe
