#pragma once
#include <ATen/core/ScalarType.h>

#include <string>

#include "lib/model/batch.h"
#include "lib/model/llava_config.h"

namespace mm::bench {

/// "50m": 53 million parameters, ViT 7 x 384 on 49 patches, decoder 8 x 512 with 8 heads on 4,
/// vocabulary 16,000. "300m": 322 million, ViT 13 x 768, decoder 14 x 1024 with 16 heads on 8,
/// vocabulary 32,000. One ViT layer lies behind the feature layer.
/// tools/peers/bench_transformers.py builds the same. Throws UsageError for other names.
model::LlavaConfig bench_config(const std::string& shape);

/// Samples of one picture and 20 to 150 text tokens, half of them targets, as many as keep the sum
/// of their lengths at most `tokens`. With `padded` each is as long as the longest, by tokens
/// without a target that count in no size but `computed_tokens`.
struct BenchBatch {
  model::Batch batch;
  int64_t computed_tokens = 0;
};
BenchBatch bench_batch(const model::LlavaConfig& config, int64_t tokens, bool padded,
                       at::ScalarType dtype);

}  // namespace mm::bench
