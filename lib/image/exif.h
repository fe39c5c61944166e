#pragma once
#include <cstddef>
#include <span>

#include "lib/image/image.h"

namespace mm::image {

/// Orientation (tag 0x0112 of the first directory, Exif 2.3 section 4.6.4) of a TIFF block
/// "II*\0..." or "MM\0*...", with or without the "Exif\0\0" that JPEG puts in front. 1 if there is
/// none, or if anything about the block or the value is invalid.
int exif_orientation(std::span<const std::byte> block);

/// True for orientations 5..8, which swap width and height.
inline bool swaps_sides(int orientation) { return orientation >= 5 && orientation <= 8; }

/// Turns stored pixels upright. `orientation` in 1..8; 1 returns the picture as it is.
Image apply_orientation(Image stored, int orientation);

}  // namespace mm::image
