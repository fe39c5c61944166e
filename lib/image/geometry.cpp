#include "lib/image/geometry.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/error.h"
#include "lib/image/tiling.h"

namespace mm::image {
namespace {

int32_t floor_ratio(int64_t a, int64_t b, int64_t divisor) {
  return static_cast<int32_t>(a * b / divisor);
}

constexpr std::pair<std::string_view, Geometry> kGeometries[] = {
    {"crop", Geometry::kCrop}, {"pad", Geometry::kPad},       {"squash", Geometry::kSquash},
    {"adm", Geometry::kAdm},   {"anyres", Geometry::kAnyRes}, {"internvl", Geometry::kInternVl},
    {"qwen", Geometry::kQwen}, {"bucket", Geometry::kBucket}, {"buckets", Geometry::kBuckets},
};

}  // namespace

std::optional<Geometry> geometry_from_name(std::string_view name) {
  for (const auto& [word, geometry] : kGeometries) {
    if (word == name) return geometry;
  }
  return std::nullopt;
}

bool is_uniform(Geometry geometry) {
  return geometry == Geometry::kCrop || geometry == Geometry::kPad ||
         geometry == Geometry::kSquash || geometry == Geometry::kAdm;
}

std::string_view geometry_names() {
  return "crop, pad, squash, adm, anyres, internvl, qwen, bucket, buckets";
}

Size shortest_edge_size(Size in, int32_t edge) {
  if (in.width <= in.height) return {edge, floor_ratio(edge, in.height, in.width)};
  return {floor_ratio(edge, in.width, in.height), edge};
}

Box centre_crop(Size in, Size crop) {
  MM_CHECK(crop.width <= in.width && crop.height <= in.height, "crop {} x {} of {} x {}",
           crop.width, crop.height, in.width, in.height);
  return {(in.width - crop.width) / 2, (in.height - crop.height) / 2, crop.width, crop.height};
}

Image crop(const Image& in, const Box& box) {
  MM_CHECK(box.left >= 0 && box.top >= 0 && box.width <= in.width - box.left &&
               box.height <= in.height - box.top,
           "crop {} x {} at {}, {} of {} x {}", box.width, box.height, box.left, box.top, in.width,
           in.height);
  Image out(box.width, box.height);
  for (int32_t y = 0; y < box.height; ++y)
    std::copy_n(in.at(box.left, box.top + y), out.row_bytes(), out.row(y));
  return out;
}

Placement square_placement(Size in) {
  const int32_t side = std::max(in.width, in.height);
  return {{side, side}, {(side - in.width) / 2, (side - in.height) / 2, in.width, in.height}};
}

Placement letterbox_placement(Size in, Size canvas) {
  Size inner = canvas;
  // Doubles, as the reference computes it: a product that is an integer may come out above it.
  const double wide = static_cast<double>(canvas.width) / in.width,
               tall = static_cast<double>(canvas.height) / in.height;
  if (wide < tall) {
    inner.height = std::min(static_cast<int32_t>(std::ceil(in.height * wide)), canvas.height);
  } else {
    inner.width = std::min(static_cast<int32_t>(std::ceil(in.width * tall)), canvas.width);
  }
  return {canvas,
          {(canvas.width - inner.width) / 2, (canvas.height - inner.height) / 2, inner.width,
           inner.height}};
}

Colour mean_colour(const std::array<double, 3>& mean) {
  const auto byte = [](double m) {
    return static_cast<uint8_t>(std::clamp(255.0 * m, 0.0, 255.0));
  };
  return {byte(mean[0]), byte(mean[1]), byte(mean[2])};
}

Image pad(const Image& in, const Placement& placement, Colour colour) {
  const Box& inner = placement.inner;
  MM_CHECK(inner.width == in.width && inner.height == in.height, "pad {} x {} placed as {} x {}",
           in.width, in.height, inner.width, inner.height);
  Image out(placement.canvas.width, placement.canvas.height);
  for (size_t i = 0; i < out.rgb.size(); i += 3) {
    out.rgb[i] = colour.r;
    out.rgb[i + 1] = colour.g;
    out.rgb[i + 2] = colour.b;
  }
  for (int32_t y = 0; y < in.height; ++y)
    std::copy_n(in.row(y), in.row_bytes(), out.row(inner.top + y) + size_t{3} * inner.left);
  return out;
}

Image letterbox(const Image& in, Size canvas, Filter filter, Colour colour, PassOrder order) {
  const Placement placement = letterbox_placement({in.width, in.height}, canvas);
  return pad(resize(in, {placement.inner.width, placement.inner.height}, filter, order), placement,
             colour);
}

Image prepare(const Image& in, const Preparation& preparation) {
  const Size size{in.width, in.height}, square{preparation.side, preparation.side};
  switch (preparation.geometry) {
    case Geometry::kSquash:
      return resize(in, square, preparation.filter, preparation.order);
    case Geometry::kPad:
      return resize(pad(in, square_placement(size), preparation.pad_colour), square,
                    preparation.filter, preparation.order);
    case Geometry::kAdm:
      return adm_centre_crop(in, preparation.side, preparation.order);
    case Geometry::kCrop:
      break;
    default:
      throw InternalError("prepare: a geometry of several tiles or sizes; use prepare_tiles");
  }
  const Size resized = shortest_edge_size(size, preparation.side);
  return resize_crop(in, resized, centre_crop(resized, square), preparation.filter,
                     preparation.order);
}

}  // namespace mm::image
