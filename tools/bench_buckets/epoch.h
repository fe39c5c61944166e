#pragma once
#include "tools/bench_buckets/ways.h"
#include "tools/bench_dit/dit_case.h"

namespace mm::bench {

/// What an epoch took on the wall.
struct EpochTime {
  double wall_s = 0;
  double waiting = 0;      ///< share of the ranks' time in which they waited for the slowest
  double worst_ratio = 1;  ///< of the slowest rank's computing time to the mean, worst step
  double pixels = 0;       ///< of all batches
};

/// Trains a DiT on latents (an eighth of a picture's sides) of every batch of the epoch, or of
/// every `stride`-th step (times stand for all): forward, backward, gradients summed over the
/// ranks, AdamW. Ranks are threads of this process with one thread of LibTorch each.
EpochTime train_epoch(const Way& way, const DitShape& shape, size_t stride);

}  // namespace mm::bench
