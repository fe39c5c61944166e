#include "lib/run/batch_tensors.h"

#include <ATen/ATen.h>

namespace mm::run {
namespace {

at::Tensor to_int64(const std::vector<int32_t>& values) {
  at::Tensor out = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), out.data_ptr<int64_t>());
  return out;
}

at::Tensor normalised(const data::MicroBatch& mb, at::ScalarType dtype, const PixelNorm& norm) {
  const int64_t plane = int64_t{mb.height} * mb.width;
  at::Tensor out = at::empty({mb.images, 3, mb.height, mb.width}, at::kFloat);
  float* to = out.data_ptr<float>();
  // One table of 256 results a channel: the same value as the formula, once a byte value.
  std::array<std::array<float, 256>, 3> table;
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v)
      table[c][v] = (static_cast<float>(v) / 255.0f - norm.mean[c]) / norm.std[c];
  }
  for (int64_t i = 0; i < mb.images; ++i) {
    const uint8_t* from = mb.pixels.data() + i * plane * 3;
    for (int c = 0; c < 3; ++c) {
      float* channel = to + (i * 3 + c) * plane;
      for (int64_t p = 0; p < plane; ++p) channel[p] = table[c][from[p * 3 + c]];
    }
  }
  return out.to(dtype);
}

}  // namespace

PixelNorm pixel_norm(const std::vector<double>& mean, const std::vector<double>& std) {
  PixelNorm norm;
  for (size_t c = 0; c < 3; ++c) {
    norm.mean[c] = static_cast<float>(mean.at(c));
    norm.std[c] = static_cast<float>(std.at(c));
  }
  return norm;
}

model::Batch to_batch(const data::MicroBatch& mb, int64_t image_side, at::ScalarType dtype,
                      const PixelNorm& norm) {
  model::Batch batch;
  batch.tokens = to_int64(mb.tokens);
  batch.targets = to_int64(mb.targets);
  batch.positions = to_int64(mb.positions);
  batch.image_token_index = to_int64(mb.image_token_index);
  batch.cu_seqlens.assign(mb.cu_seqlens.begin(), mb.cu_seqlens.end());
  if (batch.cu_seqlens.empty()) batch.cu_seqlens = {0};
  batch.pixel_values = mb.images > 0 ? normalised(mb, dtype, norm)
                                     : at::empty({0, 3, image_side, image_side}, dtype);
  batch.sizes = {
      .tokens = static_cast<int64_t>(mb.tokens.size()),
      .samples = static_cast<int64_t>(batch.cu_seqlens.size()) - 1,
      .images = mb.images,
      .patches = mb.images > 0 ? static_cast<int64_t>(mb.image_token_index.size()) / mb.images : 0,
      .targets = mb.target_count,
      .attention_pairs = mb.attention_pairs};
  return batch;
}

}  // namespace mm::run
