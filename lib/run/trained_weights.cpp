#include "lib/run/trained_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace mm::run {

TrainedWeights read_trained_weights(const state::Checkpoint& checkpoint, const model::Model& model,
                                    Weights weights) {
  TrainedWeights out;
  std::vector<state::StateTensor> wanted;
  for (const model::ParamSpec& spec : model.params) {
    out.values.push_back(at::empty(spec.shape, at::kFloat));
    const std::string average = "ema." + spec.name;
    const bool has =
        weights == Weights::kAveraged &&
        std::ranges::find(checkpoint.manifest.tensors, average, &ckpt::TensorRecord::name) !=
            checkpoint.manifest.tensors.end();
    out.averaged = out.averaged || has;
    wanted.push_back({has ? average : spec.name, out.values.back()});
  }
  state::load_tensors(checkpoint, wanted);
  return out;
}

}  // namespace mm::run
