#pragma once
#include <vector>

#include "lib/model/block.h"
#include "lib/state/load_state.h"

namespace mm::run {

enum class Weights { kAveraged, kRaw };

/// A checkpoint's values of a model's parameters, in fp32.
struct TrainedWeights {
  std::vector<at::Tensor> values;
  bool averaged = false;  ///< some are the moving average's
};
/// `weights`: the moving average where the checkpoint has one, and the weights themselves of
/// parameters without. Throws as state::load_tensors.
TrainedWeights read_trained_weights(const state::Checkpoint& checkpoint, const model::Model& model,
                                    Weights weights);

}  // namespace mm::run
