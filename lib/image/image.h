#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mm::image {

/// A picture in memory: 8-bit RGB, rows top to bottom, no padding between rows.
struct Image {
  int32_t width = 0;
  int32_t height = 0;
  std::vector<uint8_t> rgb;  ///< [height, width, 3]

  Image() = default;
  /// All bytes 0. Sizes >= 0; callers have checked them against Limits.
  Image(int32_t w, int32_t h) : width(w), height(h), rgb(static_cast<size_t>(w) * h * 3) {}

  size_t row_bytes() const { return static_cast<size_t>(width) * 3; }
  const uint8_t* row(int32_t y) const { return rgb.data() + row_bytes() * y; }
  uint8_t* row(int32_t y) { return rgb.data() + row_bytes() * y; }
  const uint8_t* at(int32_t x, int32_t y) const { return row(y) + size_t{3} * x; }
  bool operator==(const Image&) const = default;
};

struct Size {
  int32_t width = 0;
  int32_t height = 0;
  bool operator==(const Size&) const = default;
};

/// Pixels [left, left + width) x [top, top + height).
struct Box {
  int32_t left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

struct Colour {
  uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Colour&) const = default;
};

inline std::span<const std::byte> as_bytes(std::string_view content) {
  return std::as_bytes(std::span(content.data(), content.size()));
}

}  // namespace mm::image
