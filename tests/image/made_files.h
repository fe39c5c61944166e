#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/image/image.h"

namespace mm::image::testing {

/// A JPEG with arithmetic instead of Huffman coding.
std::string arithmetic_jpeg(const Image& image);

/// The first `at` bytes of `file`, `inserted`, the rest.
std::string insert(std::string_view file, size_t at, std::string_view inserted);

/// A JPEG segment: marker, length, content.
std::string jpeg_segment(uint8_t marker, std::string_view content);

/// A PNG chunk: length, type, content, checksum.
std::string png_chunk(std::string_view type, std::string_view content);

/// What a GIF of one frame is made of. Indices are written as plain codes of 9 bits, with a clear
/// code before the table would grow.
struct GifRecipe {
  Size screen{4, 4};
  Box frame{0, 0, 4, 4};
  std::vector<uint8_t> indices;  ///< [frame.height, frame.width]
  std::vector<Colour> colours = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 9, 9}};
  int transparent = -1;
  bool interlaced = false;
  bool end_mark = true;
};
std::string make_gif(const GifRecipe& recipe);

}  // namespace mm::image::testing
