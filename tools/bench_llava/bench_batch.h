#pragma once
#include <ATen/core/ScalarType.h>

#include "lib/model/batch.h"
#include "lib/model/llava_config.h"

namespace mm::bench {

/// About 51 million parameters: ViT 6 x 384 on 49 patches, decoder 8 x 512 with 8 heads on 4,
/// vocabulary 16,000.
model::LlavaConfig bench_config();

/// A pack of about `tokens` tokens: samples of one picture and 20 to 50 text tokens, half of them
/// targets.
model::Batch bench_batch(const model::LlavaConfig& config, int64_t tokens, at::ScalarType dtype);

}  // namespace mm::bench
