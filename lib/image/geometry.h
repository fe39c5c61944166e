#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/image/image.h"
#include "lib/image/resize.h"

namespace mm::image {

/// How a picture becomes what a vision tower or an encoder takes. The first four give one square of
/// `side` pixels; see tiling.h for the others.
enum class Geometry {
  kCrop,      ///< "crop": shortest edge to `side`, centre crop (CLIP)
  kPad,       ///< "pad": pad to a square with the mean colour, then resize (LLaVA 1.5)
  kSquash,    ///< "squash": both sides to `side`, aspect ratio changes (SigLIP)
  kAdm,       ///< "adm": box-halved, then bicubic, then centre crop (ADM, DiT)
  kAnyRes,    ///< "anyres": the whole squashed, then tiles of the best grid (LLaVA-NeXT)
  kInternVl,  ///< "internvl": tiles of the nearest ratio, then the whole squashed
  kQwen,      ///< "qwen": sides to multiples of patch * merge within a range of pixels (Qwen2-VL)
  kBucket,    ///< "bucket": covers the bucket of the nearest ratio, centre crop (PixArt)
  kBuckets,   ///< "buckets": as fit_bucket says, for sets of diffusion models; no tokens
};
/// All of one size and one tile?
bool is_uniform(Geometry geometry);
/// The words, with commas.
std::string_view geometry_names();
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
/// Resize to the placement's inner box and pad.
Image letterbox(const Image& in, Size canvas, Filter filter, Colour colour,
                PassOrder order = PassOrder::kPillow12);

/// Recipe of a picture's way into a vision tower.
struct Preparation {
  Geometry geometry = Geometry::kCrop;
  int32_t side = 336;
  Filter filter = Filter::kBicubic;
  PassOrder order = PassOrder::kPillow12;
  Colour pad_colour{122, 116, 104};       ///< of kPad
  int32_t patch = 14;                     ///< pixels of a patch
  int32_t merge = 1;                      ///< patches along a side that make one token
  std::vector<Size> grid_points;          ///< kAnyRes: multiples of `side`
  int32_t max_grid_tiles = 0;             ///< kAnyRes: see scaled_grid()
  int32_t min_tiles = 1, max_tiles = 12;  ///< kInternVl, without the whole
  bool thumbnail = true;                  ///< kInternVl: one tile more shows the whole
  int64_t min_pixels = 56 * 56, max_pixels = 1280 * 28 * 28;  ///< kQwen
  std::vector<Size> buckets;                                  ///< kBucket, kBuckets
};
/// Upright picture in, [side, side, 3] out, for the geometries that give one square; to the bit as
/// Pillow (of `order`) and the Hugging Face slow processors do.
Image prepare(const Image& in, const Preparation& preparation);

}  // namespace mm::image
