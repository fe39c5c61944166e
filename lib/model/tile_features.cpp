#include "lib/model/tile_features.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/image/anyres.h"
#include "lib/model/rows.h"

namespace mm::model {
namespace {

/// Part of a grid whose features are scaled before they are lined up.
struct Scaled {
  std::vector<int64_t> rows;
  image::Size from, to;
};

/// out[place[i]] = source[i]-th row of the features followed by those of all scaled parts; the
/// other rows of `out` are newlines.
struct Arrangement {
  std::vector<int64_t> source, place;
  std::vector<Scaled> scaled;
  int64_t rows = 0;         ///< of `out`
  int64_t source_rows = 0;  ///< so far: features, then scaled parts
};

// Rows of `kept` of a picture's grid, line by line; its tiles begin at row `first`.
std::vector<int64_t> grid_rows(const PictureShape& picture, const image::Box& kept, int64_t first,
                               int64_t side) {
  std::vector<int64_t> rows;
  for (int64_t y = kept.top; y < kept.top + kept.height; ++y) {
    for (int64_t x = kept.left; x < kept.left + kept.width; ++x) {
      const int64_t tile = y / side * picture.columns + x / side;
      rows.push_back(first + tile * side * side + y % side * side + x % side);
    }
  }
  return rows;
}

void append_rows(const std::vector<int64_t>& rows, Arrangement& out) {
  for (const int64_t row : rows) {
    out.source.push_back(row);
    out.place.push_back(out.rows++);
  }
}

void append_grid(const PictureShape& picture, int64_t first, const TileForm& form,
                 Arrangement& out) {
  const auto side = static_cast<int32_t>(form.side);
  const image::Size original{static_cast<int32_t>(picture.original_width),
                             static_cast<int32_t>(picture.original_height)};
  MM_CHECK(original.width > 0 && original.height > 0, "a picture of {} x {} pixels", original.width,
           original.height);
  const image::Box kept = image::unpadded_grid(
      original, side, {static_cast<int32_t>(picture.columns), static_cast<int32_t>(picture.rows)});
  const image::Size from{kept.width, kept.height};
  const image::Size to = image::scaled_grid(from, side, static_cast<int32_t>(form.max_tiles));
  std::vector<int64_t> rows = grid_rows(picture, kept, first, form.side);
  if (to != from) {
    out.scaled.push_back({std::move(rows), from, to});
    rows.resize(static_cast<size_t>(to.width) * static_cast<size_t>(to.height));
    for (int64_t& row : rows) row = out.source_rows++;
  }
  for (int64_t y = 0; y < to.height; ++y) {
    append_rows({rows.begin() + y * to.width, rows.begin() + (y + 1) * to.width}, out);
    ++out.rows;
  }
}

Arrangement arrange(std::span<const PictureShape> pictures, const TileForm& form,
                    int64_t feature_rows) {
  Arrangement out{.source_rows = feature_rows};
  const int64_t patches = form.side * form.side;
  int64_t first = 0;
  for (const PictureShape& picture : pictures) {
    const int64_t before = out.rows, begin = first;
    first += picture.tiles * patches;
    MM_CHECK(first <= feature_rows, "pictures have {} features, {} are there", first, feature_rows);
    if (picture.tokens == 0) continue;
    std::vector<int64_t> whole(static_cast<size_t>(patches));
    for (int64_t i = 0; i < patches; ++i) whole[static_cast<size_t>(i)] = begin + i;
    append_rows(whole, out);
    if (picture.tiles > 1) {
      MM_CHECK(picture.tiles == 1 + picture.rows * picture.columns,
               "{} tiles for a grid of {} x {}", picture.tiles, picture.rows, picture.columns);
      append_grid(picture, begin + patches, form, out);
    } else if (picture.tokens == patches + 1) {
      ++out.rows;
    }
    MM_CHECK(out.rows - before == picture.tokens, "a picture has {} features for {} tokens",
             out.rows - before, picture.tokens);
  }
  MM_CHECK(first == feature_rows, "pictures have {} features, {} are there", first, feature_rows);
  return out;
}

// [h * w, C] -> [h' * w', C]; corners are not aligned, as published.
at::Tensor scale_down(const at::Tensor& features, const Scaled& part) {
  const at::Tensor rows = select_rows(features, at::tensor(part.rows, at::kLong));
  const at::Tensor planes =
      rows.t().reshape({1, features.size(1), part.from.height, part.from.width});
  const at::Tensor scaled =
      at::upsample_bilinear2d(planes, {part.to.height, part.to.width}, /*align_corners=*/false);
  return scaled.flatten(2).squeeze(0).t();
}

}  // namespace

at::Tensor arrange_tiles(const at::Tensor& features, const at::Tensor& newline,
                         std::span<const PictureShape> pictures, const TileForm& form) {
  const Arrangement a = arrange(pictures, form, features.size(0));
  std::vector<at::Tensor> sources{features};
  for (const Scaled& part : a.scaled) sources.push_back(scale_down(features, part));
  const at::Tensor source = sources.size() == 1 ? features : at::cat(sources);
  const at::Tensor lines = newline.unsqueeze(0).expand({a.rows, newline.size(0)});
  return replace_rows(lines, at::tensor(a.place, at::kLong),
                      select_rows(source, at::tensor(a.source, at::kLong)));
}

Slot add_tile_arrangement(Model& model, const LlavaConfig& config, Slot tile_features) {
  const ParamId newline = model.add_param(
      {.name = kImageNewline, .shape = {config.text.hidden}, .part = Part::kProjector});
  const TileForm form{config.vision.image_size / config.vision.patch_size, config.max_grid_tiles};
  const Slot out = model.add_slot("features");
  Segment segment{.name = "tiles", .in = {tile_features}, .out = {out}, .params = {newline}};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{
        arrange_tiles(in[0], context.params.get(newline), context.batch.pictures, form)};
  };
  segment.cost = [](const Sizes&) { return SegmentCost{}; };
  model.blocks.push_back({"tiles", Part::kProjector, {std::move(segment)}});
  return out;
}

PictureShape tiled_shape(const LlavaConfig& config, int64_t height, int64_t width) {
  const auto side = static_cast<int32_t>(config.vision.image_size);
  std::vector<image::Size> points;
  for (const GridPoint& point : config.grid_points)
    points.push_back({static_cast<int32_t>(point.width), static_cast<int32_t>(point.height)});
  const image::Size size{static_cast<int32_t>(width), static_cast<int32_t>(height)};
  const image::Size best = image::best_grid(size, points);
  const image::Size grid{best.width / side, best.height / side};
  return {.tiles = 1 + int64_t{grid.width} * grid.height,
          .rows = grid.height,
          .columns = grid.width,
          .tokens = image::anyres_tokens(
              size, static_cast<int32_t>(config.vision.image_size / config.vision.patch_size), grid,
              static_cast<int32_t>(config.max_grid_tiles)),
          .height = side,
          .width = side,
          .original_height = height,
          .original_width = width};
}

}  // namespace mm::model
