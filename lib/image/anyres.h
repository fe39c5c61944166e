#pragma once
#include <cstdint>
#include <span>

#include "lib/image/image.h"

namespace mm::image {

// Any-resolution pictures (LLaVA-NeXT, OneVision): a picture is fitted into a grid of tiles and
// padded; the features of the padding are cut off again. `side`: patches along a side of a tile;
// `grid`: tiles. All pure.

/// The grid of `points` with the largest effective resolution, then the least waste, the first on a
/// tie. `points` is not empty.
Size best_grid(Size in, std::span<const Size> points);

/// The patches of the grid that show a picture of size `in`: left, top, width, height.
Box unpadded_grid(Size in, int32_t side, Size grid);

/// What a grid of `patches` is scaled down to (OneVision): as it is up to 1.1 times the side of
/// `max_tiles` tiles, else to about `max_tiles` * side^2 patches. `max_tiles` 0: as it is.
Size scaled_grid(Size patches, int32_t side, int32_t max_tiles);

/// Tokens of a picture: base + unpadded, scaled grid + one per row of it.
int32_t anyres_tokens(Size in, int32_t side, Size grid, int32_t max_tiles = 0);

}  // namespace mm::image
