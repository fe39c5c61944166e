#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/model/block.h"

// A LLaVA in miniature, float64: tower, projector, tied embedding with splice, two residual layers,
// head with a sum of cross entropies. T tokens, I pictures of 2 patches, H = 4, vocabulary 7.
namespace mm::step::toy {

inline constexpr int64_t kVocab = 7, kHidden = 4, kPatches = 2;

/// Parameters by ParamId.
enum Param { kTower, kProjector, kEmbedding, kLayer1In, kLayer1Out, kLayer2 };
inline constexpr int kParams = kLayer2 + 1;

/// Blocks: vision, projector, embed (two segments), layer1 (two segments), layer2 (reads layer1's
/// output and the first residual), head (shares the embedding's weight).
model::Model make_model();

/// Deterministic values of about 0.5, another set per `seed`; one tensor per parameter.
std::vector<at::Tensor> make_weights(const model::Model& model, int seed);

/// `tokens` tokens, the first 2 * `images` of them placeholders; every `skip`-th token has no
/// target (0: all have one).
struct BatchShape {
  int64_t tokens = 6;
  int64_t images = 1;
  int64_t skip = 3;
};
model::Batch make_batch(const BatchShape& shape, int seed);

/// Two batches in one row.
model::Batch concatenate(const model::Batch& a, const model::Batch& b);

}  // namespace mm::step::toy
