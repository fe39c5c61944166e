#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <vector>

#include "lib/data/loader.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// How the losses l_i of a step's targets become one number. n_s: targets of sample s; a group:
/// `micro_packs` packs of the step, in plan order; n_g: its targets.
enum class LossReduction {
  kGlobalToken,  ///< sum l_i / N: each target weighs the same
  kMicroMean,    ///< mean of the groups' means: what Hugging Face's trainer did until 4.46, and so
                 ///< what published LLaVA weights were trained with; groups without targets are
                 ///< left out
  kSampleMean,   ///< mean of the samples' means; samples without targets are left out
  kSqrt,         ///< sum l_i / sqrt(n_s) over sum sqrt(n_s): between the two
};
/// "global_token" "micro_mean" "sample_mean" "sqrt".
std::optional<LossReduction> loss_reduction(std::string_view word);

/// Weights and divisor of a stage's steps: pure functions of the plan, so equal for every number of
/// ranks; kMicroMean alone depends on how samples share packs.
class LossWeights {
 public:
  /// `sizes`: of the data set, in row order; kept only where weights need them.
  LossWeights(const LossRecipe& loss, std::vector<data::SampleSize> sizes);

  /// Over all ranks; 0 in a step without targets.
  double divisor(const data::PlannedStep& step) const;

  /// [T] of `dtype`, for micro-batch `index` of this rank, whose packs are `dealt`; undefined where
  /// all weights are 1. O(tokens + packs of the step).
  at::Tensor of_micro_batch(const data::LoaderStep& step, int rank, int index,
                            at::ScalarType dtype) const;

 private:
  double sample_targets(uint64_t row) const { return sizes_.at(row).targets; }
  double group_targets(const data::PlannedStep& step, size_t pack) const;

  LossReduction reduction_;
  size_t micro_packs_;
  std::vector<data::SampleSize> sizes_;
};

}  // namespace mm::run
