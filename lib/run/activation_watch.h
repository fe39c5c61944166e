#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/dist/group.h"
#include "lib/model/block.h"
#include "lib/run/metrics.h"

namespace mm::run {

/// Mean and variance of every value between blocks, over a step's micro-batches and all ranks. It
/// looks at what the forward leaves, changes nothing, and costs a pass over each value while it is
/// on. `saw` may come from several threads.
class ActivationWatch {
 public:
  /// `model` must outlive it.
  explicit ActivationWatch(const model::Model& model);

  /// From here on, until `moments`: whether values are looked at.
  void watch(bool on);
  /// A value of `slot` of one micro-batch. Losses, logits and whole numbers are passed over.
  void saw(model::Slot slot, const at::Tensor& value);
  /// Collective over `control`: what was seen since `watch(true)`, by slot name; slots without
  /// elements are left out. Turns the watch off.
  std::map<std::string, Moments> moments(dist::Group& control);

 private:
  struct Sums {
    double count = 0, sum = 0, squares = 0;
  };
  const model::Model& model_;
  std::mutex mutex_;
  bool on_ = false;
  std::vector<Sums> sums_;  ///< a slot
};

}  // namespace mm::run
