#pragma once
#include <cstdint>
#include <vector>

#include "lib/model/eager.h"
#include "lib/model/llava.h"

namespace mm::model::test {

/// 2 + 1 ViT layers of width 16 on 4 patches, 2 decoder layers of width 24 with 4 heads on 2,
/// vocabulary 50, image token 49.
LlavaConfig tiny_config();

/// One sample of a test pack.
struct TinySample {
  int64_t pictures = 0;
  std::vector<int64_t> text;  ///< after the pictures; all but the first are targets
};

/// Packs samples: the pictures' placeholders first, then the text. Pixels depend only on (sample
/// seed, picture).
Batch tiny_batch(const LlavaConfig& config, const std::vector<TinySample>& samples,
                 at::ScalarType dtype = at::kDouble);

/// Parameters with gain enough that everything matters: biases and norms are random too.
SimpleParams lively_params(const Model& model, uint64_t seed, at::ScalarType dtype = at::kDouble);

/// |a - b|_2 / |b|_2, 0 if both are zero.
double relative(const at::Tensor& a, const at::Tensor& b);

/// The gradient of a parameter, zeros if none arrived.
at::Tensor grad_or_zero(const Model& model, const SimpleParams& params, ParamId id);

}  // namespace mm::model::test
