#include "lib/run/batch_tensors.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/patch_layout.h"

namespace mm::run {
namespace {

/// One table of 256 results a channel: the same value as the formula, once a byte value.
class Normaliser {
 public:
  explicit Normaliser(const PixelNorm& norm) {
    for (size_t c = 0; c < 3; ++c) {
      for (size_t v = 0; v < 256; ++v)
        table_[c][v] = (static_cast<float>(v) / 255.0f - norm.mean[c]) / norm.std[c];
    }
  }
  /// [area, 3] bytes to [3, area] values.
  void apply(const uint8_t* from, int64_t area, float* to) const {
    for (int64_t c = 0; c < 3; ++c) {
      float* channel = to + c * area;
      for (int64_t p = 0; p < area; ++p)
        channel[p] = table_[static_cast<size_t>(c)][from[p * 3 + c]];
    }
  }

 private:
  std::array<std::array<float, 256>, 3> table_;
};

model::PictureShape shape_of(const data::PictureGrid& grid) {
  return {.tiles = grid.tiles,
          .rows = grid.rows,
          .columns = grid.columns,
          .tokens = grid.tokens,
          .height = grid.height,
          .width = grid.width,
          .original_height = grid.original_height,
          .original_width = grid.original_width};
}

/// Calls f(grid, bytes) for each picture that some token stands for.
template <typename F>
void for_used_pictures(const data::MicroBatch& mb, F&& f) {
  const uint8_t* bytes = mb.pixels.data();
  for (const data::PictureGrid& grid : mb.grids) {
    if (grid.tokens > 0) f(grid, bytes);
    bytes += grid.pixel_bytes();
  }
}

// Tiles of `side` pixels: [tiles, 3, side, side].
void set_tiles(const data::MicroBatch& mb, int64_t side, const PixelNorm& norm,
               model::Batch& batch) {
  const Normaliser normaliser(norm);
  int64_t tiles = 0;
  for_used_pictures(mb, [&](const data::PictureGrid& grid, const uint8_t*) {
    MM_CHECK(grid.height == side && grid.width == side,
             "a tile of {} x {} pixels, the model reads {}", grid.height, grid.width, side);
    batch.pictures.push_back(shape_of(grid));
    tiles += grid.tiles;
  });
  batch.pixel_values = at::empty({tiles, 3, side, side}, at::kFloat);
  float* to = batch.pixel_values.mutable_data_ptr<float>();
  const int64_t area = side * side;
  for_used_pictures(mb, [&](const data::PictureGrid& grid, const uint8_t* bytes) {
    for (int64_t i = 0; i < grid.tiles; ++i, to += area * 3)
      normaliser.apply(bytes + i * area * 3, area, to);
  });
}

// Pictures of any size: rows of patches, [N, 3 * patch * patch].
void set_patches(const data::MicroBatch& mb, const model::VisionConfig& config,
                 const PixelNorm& norm, model::Batch& batch) {
  const Normaliser normaliser(norm);
  const int64_t width = 3 * config.patch_size * config.patch_size;
  std::vector<at::Tensor> rows{at::empty({0, width}, at::kFloat)};
  for_used_pictures(mb, [&](const data::PictureGrid& grid, const uint8_t* bytes) {
    batch.pictures.push_back(shape_of(grid));
    const at::Tensor picture = at::empty({3, grid.height, grid.width}, at::kFloat);
    normaliser.apply(bytes, int64_t{grid.height} * grid.width, picture.mutable_data_ptr<float>());
    rows.push_back(model::cut_patches(picture, config.patch_size, config.merge));
  });
  batch.pixel_values = at::cat(rows);
  batch.patch_layout =
      std::make_shared<model::PatchLayout>(model::layout_patches(batch.pictures, config));
  model::count_patches(batch.pictures, config, batch.sizes);
  const at::Tensor& index = batch.image_token_index;
  batch.axis_positions = model::axis_positions(
      batch.pictures, {index.const_data_ptr<int64_t>(), static_cast<size_t>(index.numel())},
      batch.cu_seqlens, config);
}

void set_pictures(const data::MicroBatch& mb, const model::LlavaConfig& config,
                  at::ScalarType dtype, const PixelNorm& norm, model::Batch& batch) {
  if (config.family == model::Family::kQwen25Vl) {
    set_patches(mb, config.vision, norm, batch);
    batch.sizes.images = static_cast<int64_t>(batch.pictures.size());
  } else if (config.has_tiles()) {
    set_tiles(mb, config.vision.image_size, norm, batch);
    batch.sizes.images = batch.pixel_values.size(0);
  } else {
    const int64_t side = config.vision.image_size;
    batch.pixel_values =
        mb.images > 0 ? same_sized_pixels(mb, dtype, norm) : at::empty({0, 3, side, side}, dtype);
    batch.sizes.images = mb.images;
  }
  batch.pixel_values = batch.pixel_values.to(dtype);
}

}  // namespace

model::Sizes picture_sizes(const data::MicroBatch& mb, const model::LlavaConfig& config) {
  model::Sizes sizes;
  if (config.family != model::Family::kQwen25Vl) return sizes;
  std::vector<model::PictureShape> pictures;
  for_used_pictures(mb, [&](const data::PictureGrid& grid, const uint8_t*) {
    pictures.push_back(shape_of(grid));
  });
  model::count_patches(pictures, config.vision, sizes);
  return sizes;
}

at::Tensor ids_tensor(const std::vector<int32_t>& values) {
  at::Tensor out = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), out.data_ptr<int64_t>());
  return out;
}

at::Tensor same_sized_pixels(const data::MicroBatch& mb, at::ScalarType dtype,
                             const PixelNorm& norm) {
  const Normaliser normaliser(norm);
  const int64_t area = int64_t{mb.height} * mb.width;
  at::Tensor out = at::empty({mb.images, 3, mb.height, mb.width}, at::kFloat);
  for (int64_t i = 0; i < mb.images; ++i)
    normaliser.apply(mb.pixels.data() + i * area * 3, area,
                     out.mutable_data_ptr<float>() + i * area * 3);
  return out.to(dtype);
}

PixelNorm pixel_norm(const std::vector<double>& mean, const std::vector<double>& std) {
  PixelNorm norm;
  for (size_t c = 0; c < 3; ++c) {
    norm.mean[c] = static_cast<float>(mean.at(c));
    norm.std[c] = static_cast<float>(std.at(c));
  }
  return norm;
}

model::Batch to_batch(const data::MicroBatch& mb, const model::LlavaConfig& config,
                      at::ScalarType dtype, const PixelNorm& norm) {
  model::Batch batch;
  batch.tokens = ids_tensor(mb.tokens);
  batch.targets = ids_tensor(mb.targets);
  batch.positions = ids_tensor(mb.positions);
  batch.image_token_index = ids_tensor(mb.image_token_index);
  batch.cu_seqlens.assign(mb.cu_seqlens.begin(), mb.cu_seqlens.end());
  if (batch.cu_seqlens.empty()) batch.cu_seqlens = {0};
  batch.sizes = {.tokens = static_cast<int64_t>(mb.tokens.size()),
                 .samples = static_cast<int64_t>(batch.cu_seqlens.size()) - 1,
                 .patches = config.patches_per_image(),
                 .targets = mb.target_count,
                 .attention_pairs = mb.attention_pairs};
  set_pictures(mb, config, dtype, norm, batch);
  return batch;
}

}  // namespace mm::run
