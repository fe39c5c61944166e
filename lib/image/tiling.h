#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/image/anyres.h"
#include "lib/image/geometry.h"
#include "lib/image/image.h"

namespace mm::image {

/// What a picture becomes for a vision tower: `tiles` pictures of one size, and the placeholders
/// they take in the token stream. `rows` x `columns` of the tiles lie side by side over the
/// picture, row by row; one tile more shows the whole (first for kAnyRes, last for kInternVl).
struct PictureShape {
  Size tile;  ///< pixels
  int32_t tiles = 1;
  int32_t rows = 1, columns = 1;
  int32_t tokens = 0;
  Size original;  ///< upright, before any resizing
  bool operator==(const PictureShape&) const = default;
};

/// Shape of an upright picture of size `in`, from its header alone. Tokens: (side / patch /
/// merge)^2 for one square tile; kAnyRes: those of the base, plus the grid's without its padding
/// (scaled down above max_grid_tiles), plus one line mark per row of the grid; kInternVl: as many
/// for every tile; kQwen: (height / f) * (width / f), f = patch * merge; kBucket: (height / patch)
/// * (width / patch); kBuckets: none. Pure.
PictureShape shape_of(Size in, const Preparation& preparation);

/// The picture's tiles, [tiles, tile.height, tile.width, 3] in one Image of height tiles *
/// tile.height; to the bit as the reference processors cut them. `in` is upright.
Image prepare_tiles(const Image& in, const Preparation& preparation);

/// Columns and rows of InternVL's tiles: the ratio nearest to the picture's, of all grids of
/// `min_tiles` to `max_tiles`, fewest tiles first; on a tie the later one if the picture has more
/// than half of its pixels.
struct InternVlTiles {
  int32_t min_tiles = 1, max_tiles = 12;
};
Size internvl_grid(Size in, int32_t side, const InternVlTiles& tiles);

/// Both sides to multiples of `factor`, by rounding half to even, with `min_pixels` <= area <=
/// `max_pixels` as far as that goes (Qwen2-VL).
struct PixelRange {
  int32_t factor = 28;
  int64_t min_pixels = 56 * 56, max_pixels = 1280 * 28 * 28;
};
Size smart_size(Size in, const PixelRange& range);

/// Halves by the box filter while the short side is at least twice `side`, then bicubic to the
/// short side, then the centre (DiT, ADM).
Image adm_centre_crop(const Image& in, int32_t side, PassOrder order = PassOrder::kPillow12);

/// The bucket whose height / width is nearest to the picture's, the first on a tie.
Size nearest_bucket(Size in, std::span<const Size> buckets);
/// Scaled to cover `bucket`, the other side cut down to a whole number.
Size cover_size(Size in, Size bucket);
/// Centre crop whose offsets are (size - crop) / 2 rounded half to even (torchvision).
Box even_centre_crop(Size in, Size crop);

/// Rounds half to even: 0.5 -> 0, 1.5 -> 2.
int64_t round_half_even(double value);

}  // namespace mm::image
