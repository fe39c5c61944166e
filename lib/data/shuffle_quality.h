#pragma once
#include <span>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// How much a plan's order is like a uniform shuffle. 1: as a shuffle of single samples; 0: sorted.
struct ShuffleQuality {
  /// Variance of the samples' lengths within steps / over the epoch: near 1 when a step's samples
  /// are as varied as all, near 0 when each step holds one length.
  double within_steps = 1;
  /// Mean distance between a sample's place in the plan and in the index / n/3, its mean over
  /// random orders; at most 1.
  double distance = 1;
  /// The smaller of the two.
  double figure() const { return within_steps < distance ? within_steps : distance; }
};

/// O(rows).
ShuffleQuality shuffle_quality(std::span<const SampleSize> sizes, const PlanView& plan);

}  // namespace mm::data
