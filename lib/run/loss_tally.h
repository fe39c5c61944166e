#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/dist/group.h"
#include "lib/run/stage_run.h"

namespace mm::run {

/// Mean loss of a target by what its sample is: "picture" or "text", and by name of its source.
/// What no sample of the step was is absent.
struct LossBy {
  std::map<std::string, double> modality, source;
};

/// Sums losses of samples by modality and source. Each rank adds what it saw; the sums go over all
/// ranks. Losses are those of targets, without the weights of loss.reduction.
class LossTally {
 public:
  /// `set` must outlive it.
  explicit LossTally(const data::Dataset& set);

  /// Collective over `control`, whatever a rank saw. O(samples of the step).
  LossBy of(const StageStep& step, dist::Group& control) const;

 private:
  const data::Dataset& set_;
  const std::vector<std::string> sources_;
};

}  // namespace mm::run
