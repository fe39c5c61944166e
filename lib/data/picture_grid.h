#pragma once
#include <cstdint>

namespace mm::data {

/// What a picture of a set of varied pictures is: its tiles, which have one size, and its tokens.
/// `rows` x `columns` tiles lie over the picture, row by row; one more may show the whole (first
/// for "anyres", last for "internvl").
struct PictureGrid {
  int32_t width = 0, height = 0;  ///< pixels of a tile
  int32_t tiles = 1, rows = 1, columns = 1;
  int32_t tokens = 0;                               ///< placeholders in the token stream
  int32_t original_width = 0, original_height = 0;  ///< upright, before any resizing
  bool operator==(const PictureGrid&) const = default;

  /// Bytes of all its tiles, [tiles, height, width, 3].
  uint64_t pixel_bytes() const { return uint64_t{3} * tiles * width * height; }
};

}  // namespace mm::data
