#include "tools/bench_llava/bench_batch.h"

#include <ATen/ATen.h>

#include "lib/model/cross_entropy.h"

namespace mm::bench {

model::LlavaConfig bench_config() {
  model::LlavaConfig config;
  config.vision = {.hidden = 384,
                   .intermediate = 1536,
                   .layers = 7,
                   .heads = 6,
                   .image_size = 112,
                   .patch_size = 16};
  config.text.vocab = 16000;
  config.text.hidden = 512;
  config.text.intermediate = 1408;
  config.text.layers = 8;
  config.text.heads = 8;
  config.text.kv_heads = 4;
  config.text.head_size = 64;
  config.image_token_index = 15999;
  return config;
}

model::Batch bench_batch(const model::LlavaConfig& config, int64_t tokens, at::ScalarType dtype) {
  model::Batch batch;
  batch.cu_seqlens = {0};
  std::vector<int64_t> ids, targets, positions, places;
  const int64_t patches = config.patches_per_image();
  int64_t images = 0;
  while (static_cast<int64_t>(ids.size()) + patches + 50 <= tokens) {
    const int64_t text = 20 + images * 7 % 31;
    for (int64_t j = 0; j < patches + text; ++j) {
      const auto row = static_cast<int64_t>(ids.size());
      const bool picture = j < patches;
      if (picture) places.push_back(row);
      ids.push_back(picture ? config.image_token_index : row * 31 % 15000);
      targets.push_back(j > patches + text / 2 ? row * 17 % 15000 : model::kNoTarget);
      positions.push_back(j);
    }
    const auto length = static_cast<double>(patches + text);
    batch.sizes.attention_pairs += length * (length + 1) / 2;
    batch.cu_seqlens.push_back(static_cast<int64_t>(ids.size()));
    ++images;
  }
  batch.tokens = at::tensor(ids, at::kLong);
  batch.targets = at::tensor(targets, at::kLong);
  batch.positions = at::tensor(positions, at::kLong);
  batch.image_token_index = at::tensor(places, at::kLong);
  batch.pixel_values =
      at::randn({images, 3, config.vision.image_size, config.vision.image_size}).to(dtype);
  batch.sizes.tokens = static_cast<int64_t>(ids.size());
  batch.sizes.samples = batch.sizes.images = images;
  batch.sizes.patches = patches;
  batch.sizes.targets = batch.targets.ne(model::kNoTarget).sum().item<int64_t>();
  return batch;
}

}  // namespace mm::bench
