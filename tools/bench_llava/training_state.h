#pragma once
#include <ATen/core/ScalarType.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/model/eager.h"
#include "lib/optim/adamw.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/param_store.h"

namespace mm::bench {

/// What a step reads and writes besides activations: with an optimizer all that a run holds
/// (weights, fp32 masters, flat fp32 gradients, moments), without one weights and gradients alone,
/// the latter made anew each step.
class TrainingState {
 public:
  TrainingState(const model::Model& model, const std::vector<bool>& trainable, at::ScalarType dtype,
                bool optimizer);

  const model::ParamView& params() const;
  model::GradSink& sink();
  void clear_gradients();
  /// AdamW, if there is one.
  void update();
  /// Bytes that each trained parameter takes between steps and at the end of a backward: "weight 2
  /// + gradient 4".
  std::string bytes_per_parameter() const;

 private:
  const at::ScalarType dtype_;
  std::unique_ptr<model::SimpleParams> simple_;
  std::unique_ptr<optim::ParamStore> store_;
  std::unique_ptr<optim::FlatGradSink> gradients_;
  std::unique_ptr<optim::AdamW> optimizer_;
};

}  // namespace mm::bench
