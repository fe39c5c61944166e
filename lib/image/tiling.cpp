#include "lib/image/tiling.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/image/bucket_fit.h"

namespace mm::image {
namespace {

Size of(const Image& image) { return {image.width, image.height}; }

int32_t square_tokens(const Preparation& p) {
  const int32_t patches = p.side / p.patch / p.merge;
  return patches * patches;
}

PictureShape anyres_shape(Size in, const Preparation& p) {
  const Size best = best_grid(in, p.grid_points);
  const Size grid{best.width / p.side, best.height / p.side};
  return {.tile = {p.side, p.side},
          .tiles = 1 + grid.width * grid.height,
          .rows = grid.height,
          .columns = grid.width,
          .tokens = anyres_tokens(in, p.side / p.patch, grid, p.max_grid_tiles)};
}

PictureShape internvl_shape(Size in, const Preparation& p) {
  const Size grid = internvl_grid(in, p.side, {.min_tiles = p.min_tiles, .max_tiles = p.max_tiles});
  const int32_t cut = grid.width * grid.height;
  const int32_t tiles = cut + (p.thumbnail && cut > 1 ? 1 : 0);
  return {.tile = {p.side, p.side},
          .tiles = tiles,
          .rows = grid.height,
          .columns = grid.width,
          .tokens = tiles * square_tokens(p)};
}

PixelRange range_of(const Preparation& p) {
  return {p.patch * p.merge, p.min_pixels, p.max_pixels};
}

// Cuts `whole` into tiles of `side` below each other.
void append_tiles(const Image& whole, int32_t side, Image& out) {
  for (int32_t top = 0; top < whole.height; top += side) {
    for (int32_t left = 0; left < whole.width; left += side) {
      const Image tile = crop(whole, {left, top, side, side});
      out.rgb.insert(out.rgb.end(), tile.rgb.begin(), tile.rgb.end());
    }
  }
}

Image anyres_tiles(const Image& in, const Preparation& p) {
  Image out = resize(in, {p.side, p.side}, p.filter, p.order);
  append_tiles(letterbox(in, best_grid(of(in), p.grid_points), p.filter, {0, 0, 0}, p.order),
               p.side, out);
  return out;
}

Image internvl_tiles(const Image& in, const Preparation& p, const PictureShape& shape) {
  Image out;
  append_tiles(resize(in, {p.side * shape.columns, p.side * shape.rows}, p.filter, p.order), p.side,
               out);
  if (shape.tiles > shape.rows * shape.columns) {
    const Image whole = resize(in, {p.side, p.side}, p.filter, p.order);
    out.rgb.insert(out.rgb.end(), whole.rgb.begin(), whole.rgb.end());
  }
  return out;
}

Image cover_and_crop(const Image& in, Size bucket, const Preparation& p) {
  const Size covering = cover_size(of(in), bucket);
  return resize_crop(in, covering, even_centre_crop(covering, bucket), p.filter, p.order);
}

}  // namespace

int64_t round_half_even(double value) {
  const double down = std::floor(value), part = value - down;
  const auto whole = static_cast<int64_t>(down);
  if (part != 0.5) return whole + (part > 0.5 ? 1 : 0);
  return whole + whole % 2;
}

Size internvl_grid(Size in, int32_t side, const InternVlTiles& tiles) {
  const double ratio = static_cast<double>(in.width) / in.height;
  const double area = static_cast<double>(in.width) * in.height;
  Size best{1, 1};
  double best_difference = INFINITY;
  for (int32_t count = tiles.min_tiles; count <= tiles.max_tiles; ++count) {
    for (int32_t columns = 1; columns <= count; ++columns) {
      if (count % columns != 0) continue;
      const int32_t rows = count / columns;
      const double difference = std::fabs(ratio - static_cast<double>(columns) / rows);
      const bool tie = difference == best_difference && area > 0.5 * side * side * columns * rows;
      if (difference < best_difference || tie) best = {columns, rows};
      best_difference = std::min(best_difference, difference);
    }
  }
  return best;
}

Size smart_size(Size in, const PixelRange& range) {
  const double factor = range.factor;
  const auto multiple = [&](double count) { return static_cast<int32_t>(count) * range.factor; };
  Size out{multiple(static_cast<double>(round_half_even(in.width / factor))),
           multiple(static_cast<double>(round_half_even(in.height / factor)))};
  const int64_t pixels = int64_t{out.width} * out.height;
  const double area = static_cast<double>(in.width) * in.height;
  if (pixels > range.max_pixels) {
    const double beta = std::sqrt(area / static_cast<double>(range.max_pixels));
    const auto down = [&](int32_t n) {
      return std::max(range.factor, multiple(std::floor(n / beta / factor)));
    };
    return {down(in.width), down(in.height)};
  }
  if (pixels < range.min_pixels) {
    const double beta = std::sqrt(static_cast<double>(range.min_pixels) / area);
    const auto up = [&](int32_t n) { return multiple(std::ceil(n * beta / factor)); };
    return {up(in.width), up(in.height)};
  }
  return out;
}

Image adm_centre_crop(const Image& in, int32_t side, PassOrder order) {
  Image halved = in;
  while (std::min(halved.width, halved.height) >= 2 * side)
    halved = resize(halved, {halved.width / 2, halved.height / 2}, Filter::kBox, order);
  const double scale = static_cast<double>(side) / std::min(halved.width, halved.height);
  const Size size{static_cast<int32_t>(round_half_even(halved.width * scale)),
                  static_cast<int32_t>(round_half_even(halved.height * scale))};
  return resize_crop(halved, size, centre_crop(size, {side, side}), Filter::kBicubic, order);
}

Size nearest_bucket(Size in, std::span<const Size> buckets) {
  MM_CHECK(!buckets.empty(), "no bucket to choose from");
  const double ratio = static_cast<double>(in.height) / in.width;
  const auto distance = [&](const Size& bucket) {
    return std::fabs(static_cast<double>(bucket.height) / bucket.width - ratio);
  };
  return *std::min_element(buckets.begin(), buckets.end(),
                           [&](const Size& a, const Size& b) { return distance(a) < distance(b); });
}

Size cover_size(Size in, Size bucket) {
  const double tall = static_cast<double>(bucket.height) / in.height,
               wide = static_cast<double>(bucket.width) / in.width;
  if (tall > wide) {
    return {static_cast<int32_t>(int64_t{in.width} * bucket.height / in.height), bucket.height};
  }
  return {bucket.width, static_cast<int32_t>(int64_t{in.height} * bucket.width / in.width)};
}

Box even_centre_crop(Size in, Size crop) {
  MM_CHECK(crop.width <= in.width && crop.height <= in.height, "crop {} x {} of {} x {}",
           crop.width, crop.height, in.width, in.height);
  return {static_cast<int32_t>(round_half_even((in.width - crop.width) / 2.0)),
          static_cast<int32_t>(round_half_even((in.height - crop.height) / 2.0)), crop.width,
          crop.height};
}

PictureShape shape_of(Size in, const Preparation& p) {
  PictureShape shape{.tile = {p.side, p.side}, .tokens = square_tokens(p)};
  if (p.geometry == Geometry::kAnyRes) shape = anyres_shape(in, p);
  if (p.geometry == Geometry::kInternVl) shape = internvl_shape(in, p);
  if (p.geometry == Geometry::kQwen) {
    shape.tile = smart_size(in, range_of(p));
    shape.tokens = shape.tile.width / p.patch / p.merge * (shape.tile.height / p.patch / p.merge);
  }
  if (p.geometry == Geometry::kBucket) {
    shape.tile = nearest_bucket(in, p.buckets);
    shape.tokens = shape.tile.width / p.patch * (shape.tile.height / p.patch);
  }
  if (p.geometry == Geometry::kBuckets) {
    shape.tile = fit_bucket(in, p.buckets).bucket;
    shape.tokens = 0;
  }
  shape.original = in;
  return shape;
}

Image prepare_tiles(const Image& in, const Preparation& p) {
  const PictureShape shape = shape_of(of(in), p);
  Image out;
  switch (p.geometry) {
    case Geometry::kAnyRes:
      out = anyres_tiles(in, p);
      break;
    case Geometry::kInternVl:
      out = internvl_tiles(in, p, shape);
      break;
    case Geometry::kQwen:
      return resize(in, shape.tile, p.filter, p.order);
    case Geometry::kAdm:
      return adm_centre_crop(in, p.side, p.order);
    case Geometry::kBucket:
      return cover_and_crop(in, shape.tile, p);
    case Geometry::kBuckets: {
      const BucketFit fit = fit_bucket(of(in), p.buckets);
      return resize_crop(in, fit.scaled, fit.crop, p.filter, p.order);
    }
    default:
      return prepare(in, p);
  }
  out.width = shape.tile.width;
  out.height = shape.tile.height * shape.tiles;
  return out;
}

}  // namespace mm::image
