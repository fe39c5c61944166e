#include "tests/model/tiny_varied.h"

#include <ATen/ATen.h>

#include "lib/model/cross_entropy.h"
#include "lib/model/initial_draw.h"
#include "lib/model/patch_layout.h"

namespace mm::model::test {
namespace {

at::Tensor pixels_of(const PictureShape& shape, const LlavaConfig& config, int64_t seed) {
  const ParamSpec spec{
      .name = "pixels", .shape = {shape.tiles, 3, shape.height, shape.width}, .init_std = 1.0};
  const at::Tensor tiles = InitialDraw(spec, static_cast<uint64_t>(seed)).whole();
  return config.has_tiles() ? tiles
                            : cut_patches(tiles[0], config.vision.patch_size, config.vision.merge);
}

/// Token lists while samples are appended.
struct Lists {
  std::vector<int64_t> tokens, targets, positions, places;

  void add(int64_t token, int64_t target) {
    tokens.push_back(token);
    targets.push_back(target);
  }
};

void append(const VariedSample& sample, const LlavaConfig& config, Lists& lists, Batch& batch) {
  const int64_t begin = batch.cu_seqlens.back();
  for (const PictureShape& picture : sample.pictures) {
    lists.add(2, kNoTarget);
    for (int64_t i = 0; i < picture.tokens; ++i) {
      lists.places.push_back(static_cast<int64_t>(lists.tokens.size()));
      lists.add(config.image_token_index, kNoTarget);
    }
    batch.pictures.push_back(picture);
  }
  for (size_t i = 0; i < sample.text.size(); ++i)
    lists.add(sample.text[i], i + 1 < sample.text.size() ? sample.text[i + 1] : kNoTarget);
  const auto end = static_cast<int64_t>(lists.tokens.size());
  for (int64_t i = begin; i < end; ++i) lists.positions.push_back(i - begin);
  batch.cu_seqlens.push_back(end);
}

void set_layout(const LlavaConfig& config, const Lists& lists, Batch& batch) {
  if (config.family != Family::kQwen25Vl) return;
  batch.patch_layout = std::make_shared<PatchLayout>(layout_patches(batch.pictures, config.vision));
  count_patches(batch.pictures, config.vision, batch.sizes);
  batch.axis_positions =
      axis_positions(batch.pictures, lists.places, batch.cu_seqlens, config.vision);
}

}  // namespace

LlavaConfig tiny_next_config() {
  LlavaConfig config = tiny_config();
  config.family = Family::kLlavaNext;
  config.grid_points = {{8, 16}, {16, 8}, {16, 16}, {24, 8}, {8, 24}};
  return config;
}

LlavaConfig tiny_onevision_config() {
  LlavaConfig config = tiny_next_config();
  config.family = Family::kLlavaOnevision;
  config.max_grid_tiles = 1;
  config.video_token = 48;
  return config;
}

LlavaConfig tiny_qwen_config() {
  LlavaConfig config = tiny_config();
  config.family = Family::kQwen25Vl;
  config.vision = {.kind = VisionKind::kQwen25,
                   .hidden = 16,
                   .intermediate = 20,
                   .layers = 2,
                   .heads = 2,
                   .image_size = 0,
                   .patch_size = 4,
                   .norm_eps = 1e-6,
                   .merge = 2,
                   .window = 16,
                   .full_layers = {1},
                   .output = 24};
  config.text.kind = TextKind::kQwen2;
  config.text.qkv_bias = true;
  config.text.heads = 3;
  config.text.kv_heads = 1;
  config.text.head_size = 8;
  config.text.rope_sections = {1, 1, 2};
  config.vision_feature_layer = -1;
  config.keep_first_row = true;
  config.video_token = 48;
  config.vision_start_token = 46;
  config.vision_end_token = 47;
  return config;
}

PictureShape sized_picture(const LlavaConfig& config, int64_t token_rows, int64_t token_columns) {
  const int64_t cell = config.vision.patch_size * config.vision.merge;
  return {.tokens = token_rows * token_columns,
          .height = token_rows * cell,
          .width = token_columns * cell};
}

Batch varied_batch(const LlavaConfig& config, const std::vector<VariedSample>& samples,
                   at::ScalarType dtype) {
  Batch batch;
  batch.cu_seqlens = {0};
  Lists lists;
  const int64_t side = config.vision.image_size,
                area = config.vision.patch_size * config.vision.patch_size;
  std::vector<at::Tensor> pixels{config.has_tiles() ? at::empty({0, 3, side, side}, at::kFloat)
                                                    : at::empty({0, 3 * area}, at::kFloat)};
  for (const VariedSample& sample : samples) {
    append(sample, config, lists, batch);
    for (size_t i = 0; i < sample.pictures.size(); ++i)
      pixels.push_back(pixels_of(sample.pictures[i], config,
                                 sample.text.front() * 10 + static_cast<int64_t>(i)));
  }
  batch.tokens = at::tensor(lists.tokens, at::kLong);
  batch.targets = at::tensor(lists.targets, at::kLong);
  batch.positions = at::tensor(lists.positions, at::kLong);
  batch.image_token_index = at::tensor(lists.places, at::kLong);
  batch.pixel_values = at::cat(pixels).to(dtype);
  batch.sizes.tokens = batch.tokens.size(0);
  batch.sizes.samples = static_cast<int64_t>(samples.size());
  batch.sizes.images =
      config.has_tiles() ? batch.pixel_values.size(0) : static_cast<int64_t>(batch.pictures.size());
  batch.sizes.patches = config.patches_per_image();
  batch.sizes.targets = batch.targets.ne(kNoTarget).sum().item<int64_t>();
  set_layout(config, lists, batch);
  return batch;
}

}  // namespace mm::model::test
