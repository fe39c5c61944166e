#include "tools/bench_llava/bench_batch.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/cross_entropy.h"

namespace mm::bench {
namespace {

// The peer's script has the same rule.
int64_t text_length(int64_t sample) { return 20 + sample * 53 % 131; }

std::vector<int64_t> lengths_for(int64_t patches, int64_t tokens) {
  std::vector<int64_t> lengths;
  int64_t sum = 0;
  while (true) {
    const int64_t length = patches + text_length(static_cast<int64_t>(lengths.size()));
    if (!lengths.empty() && sum + length > tokens) return lengths;
    lengths.push_back(length);
    sum += length;
  }
}

}  // namespace

model::LlavaConfig bench_config(const std::string& shape) {
  const bool small = shape == "50m";
  if (!small && shape != "300m") throw UsageError("--shape {}: expected 50m or 300m", shape);
  model::LlavaConfig config;
  config.vision = {.hidden = small ? 384 : 768,
                   .intermediate = small ? 1536 : 3072,
                   .layers = small ? 7 : 13,
                   .heads = small ? 6 : 12,
                   .image_size = 112,
                   .patch_size = 16};
  config.text.vocab = small ? 16000 : 32000;
  config.text.hidden = small ? 512 : 1024;
  config.text.intermediate = small ? 1408 : 2816;
  config.text.layers = small ? 8 : 14;
  config.text.heads = small ? 8 : 16;
  config.text.kv_heads = small ? 4 : 8;
  config.text.head_size = 64;
  config.image_token_index = config.text.vocab - 1;
  return config;
}

BenchBatch bench_batch(const model::LlavaConfig& config, int64_t tokens, bool padded,
                       at::ScalarType dtype) {
  const int64_t patches = config.patches_per_image();
  const std::vector<int64_t> lengths = lengths_for(patches, tokens);
  const int64_t longest = *std::ranges::max_element(lengths);
  model::Batch batch;
  batch.cu_seqlens = {0};
  std::vector<int64_t> ids, targets, positions, places;
  for (const int64_t length : lengths) {
    for (int64_t j = 0; j < (padded ? longest : length); ++j) {
      const auto row = static_cast<int64_t>(ids.size());
      const bool picture = j < patches,
                 target = j >= patches + (length - patches) / 2 && j < length;
      if (picture) places.push_back(row);
      ids.push_back(picture ? config.image_token_index : row * 31 % 15000);
      targets.push_back(target ? row * 17 % 15000 : model::kNoTarget);
      positions.push_back(j);
    }
    batch.sizes.tokens += length;
    batch.sizes.attention_pairs += static_cast<double>(length * (length + 1)) / 2;
    batch.cu_seqlens.push_back(static_cast<int64_t>(ids.size()));
  }
  const auto images = static_cast<int64_t>(lengths.size()), side = config.vision.image_size;
  batch.tokens = at::tensor(ids, at::kLong);
  batch.targets = at::tensor(targets, at::kLong);
  batch.positions = at::tensor(positions, at::kLong);
  batch.image_token_index = at::tensor(places, at::kLong);
  batch.pixel_values = at::randn({images, 3, side, side}).to(dtype);
  batch.sizes.samples = batch.sizes.images = images;
  batch.sizes.patches = patches;
  batch.sizes.targets = batch.targets.ne(model::kNoTarget).sum().item<int64_t>();
  const auto computed = static_cast<int64_t>(ids.size());
  return {std::move(batch), computed};
}

}  // namespace mm::bench
