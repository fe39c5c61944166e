#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/image/image.h"
#include "lib/image/resize.h"

namespace mm::image {

/// How a picture becomes a square of `side` pixels.
enum class Geometry {
  kCrop,    ///< "crop": shortest edge to `side`, centre crop (CLIP)
  kPad,     ///< "pad": pad to a square with the mean colour, then resize (LLaVA 1.5)
  kSquash,  ///< "squash": both sides to `side`, aspect ratio changes (SigLIP)
};
std::optional<Geometry> geometry_from_name(std::string_view name);

/// Shortest edge to `edge`, the other to floor(edge * long / short).
Size shortest_edge_size(Size in, int32_t edge);
/// Centre crop, offsets floor((size - crop) / 2). `crop` <= `in`.
Box centre_crop(Size in, Size crop);
Image crop(const Image& in, const Box& box);

/// Where a picture lies on a canvas: `inner.left` and `inner.top` are the floor halves of the gaps,
/// so an odd gap has one pixel more on the right or below and the canvas is always filled exactly.
struct Placement {
  Size canvas;
  Box inner;
};
/// Square of the longer side.
Placement square_placement(Size in);
/// Fits into `canvas` keeping the aspect ratio: scale = min of both ratios, the other side rounded
/// up. 950x1256 into 768x768: inner 581x768, left 93 (and 94 on the right).
Placement letterbox_placement(Size in, Size canvas);

/// int(255 * mean) per channel: 122, 116, 104 for CLIP's means.
Colour mean_colour(const std::array<double, 3>& mean);
Image pad(const Image& in, const Placement& placement, Colour colour);
/// Resize to `placement.inner` and pad.
Image letterbox(const Image& in, Size canvas, Filter filter, Colour colour);

/// Recipe of a picture's way into a vision tower.
struct Preparation {
  Geometry geometry = Geometry::kCrop;
  int32_t side = 336;
  Filter filter = Filter::kBicubic;
  Colour pad_colour{122, 116, 104};
};
/// Upright picture in, [side, side, 3] out; to the bit as Pillow 12 and the Hugging Face slow
/// processors do.
Image prepare(const Image& in, const Preparation& preparation);

}  // namespace mm::image
