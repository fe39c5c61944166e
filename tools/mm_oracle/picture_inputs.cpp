#include "tools/mm_oracle/picture_inputs.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/cross_entropy.h"
#include "lib/model/patch_layout.h"
#include "lib/model/tile_features.h"

namespace mm::oracle {
namespace {

using model::PictureShape;

at::Tensor read_table(Folder& folder, const char* name, int64_t columns) {
  const at::Tensor table = folder.tensor(name);
  if (table.scalar_type() != at::kLong || table.dim() != 2 || table.size(1) != columns ||
      (table.numel() > 0 && table.min().item<int64_t>() < 1)) {
    throw DataError("{}: io.safetensors: {} must be int64 [picture, {}], above 0",
                    folder.directory().string(), name, columns);
  }
  return table;
}

PictureShape of_patches(int64_t rows, int64_t columns, const model::VisionConfig& config) {
  return {.tokens = rows * columns / (config.merge * config.merge),
          .height = rows * config.patch_size,
          .width = columns * config.patch_size};
}

// [N, channels * 2 * p * p] of two equal frames -> [N, channels * p * p].
at::Tensor one_frame(const at::Tensor& pixels, const model::VisionConfig& config) {
  const int64_t area = config.patch_size * config.patch_size;
  const at::Tensor frames = pixels.view({pixels.size(0), config.channels, 2, area});
  if (!at::equal(frames.select(2, 0), frames.select(2, 1)))
    throw DataError("pixel_values: the two frames of a picture differ");
  return frames.select(2, 0).reshape({pixels.size(0), config.channels * area});
}

int64_t tiles_of(const std::vector<PictureShape>& pictures) {
  int64_t tiles = 0;
  for (const PictureShape& picture : pictures) tiles += picture.tiles;
  return tiles;
}

void lay_out(const model::LlavaConfig& config, model::Batch& batch) {
  if (config.family != model::Family::kQwen25Vl) return;
  const at::Tensor& index = batch.image_token_index;
  batch.patch_layout =
      std::make_shared<model::PatchLayout>(model::layout_patches(batch.pictures, config.vision));
  model::count_patches(batch.pictures, config.vision, batch.sizes);
  batch.axis_positions = model::axis_positions(
      batch.pictures, {index.const_data_ptr<int64_t>(), static_cast<size_t>(index.numel())},
      batch.cu_seqlens, config.vision);
}

}  // namespace

std::vector<PictureShape> read_pictures(Folder& folder, const model::LlavaConfig& config) {
  std::vector<PictureShape> pictures;
  if (config.has_tiles()) {
    const at::Tensor sizes = read_table(folder, "image_sizes", 2);
    for (int64_t i = 0; i < sizes.size(0); ++i)
      pictures.push_back(
          model::tiled_shape(config, sizes[i][0].item<int64_t>(), sizes[i][1].item<int64_t>()));
  }
  if (config.family == model::Family::kQwen25Vl) {
    const at::Tensor grids = read_table(folder, "image_grid_thw", 3);
    for (int64_t i = 0; i < grids.size(0); ++i)
      pictures.push_back(
          of_patches(grids[i][1].item<int64_t>(), grids[i][2].item<int64_t>(), config.vision));
  }
  return pictures;
}

void set_pictures(std::vector<PictureShape> pictures, const at::Tensor& pixels,
                  const model::LlavaConfig& config, model::Batch& batch) {
  batch.pictures = std::move(pictures);
  const bool patches = config.family == model::Family::kQwen25Vl;
  batch.pixel_values = patches ? one_frame(pixels, config.vision) : pixels;
  batch.sizes.images = patches ? static_cast<int64_t>(batch.pictures.size()) : pixels.size(0);
  if (config.has_tiles() && tiles_of(batch.pictures) != pixels.size(0)) {
    throw DataError("pixel_values has {} tiles, the pictures have {}", pixels.size(0),
                    tiles_of(batch.pictures));
  }
  lay_out(config, batch);
}

model::Batch first_tokens(const model::Batch& batch, int64_t tokens,
                          const model::LlavaConfig& config) {
  model::Batch out;
  out.tokens = batch.tokens.narrow(0, 0, tokens);
  out.targets = at::full({tokens}, model::kNoTarget, at::kLong);
  out.positions = batch.positions.narrow(0, 0, tokens);
  out.cu_seqlens = {0, tokens};
  out.image_token_index = out.tokens.eq(config.image_token_index).nonzero().flatten();
  int64_t left = out.image_token_index.size(0), rows = 0;
  for (const PictureShape& picture : batch.pictures) {
    if (left < picture.tokens || left == 0) break;
    left -= picture.tokens;
    out.pictures.push_back(picture);
    rows += config.has_tiles() ? picture.tiles
                               : picture.tokens * config.vision.merge * config.vision.merge;
  }
  out.pixel_values = batch.pixel_values.narrow(0, 0, rows);
  out.sizes.tokens = tokens;
  out.sizes.samples = 1;
  lay_out(config, out);
  return out;
}

}  // namespace mm::oracle
