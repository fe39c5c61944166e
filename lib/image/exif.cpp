#include "lib/image/exif.h"

#include <algorithm>
#include <utility>

#include "lib/image/byte_view.h"

namespace mm::image {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kTypeShort = 3, kTypeLong = 4;
constexpr size_t kEntryBytes = 12;

std::span<const std::byte> without_prefix(std::span<const std::byte> block) {
  return ByteView(block).starts_with(0, std::string_view("Exif\0\0", 6)) ? block.subspan(6) : block;
}

// One 12-byte directory entry: tag, type, count, then the value, which for a SHORT sits in the
// first two bytes of the field.
int entry_value(ByteView& view, size_t at) {
  const uint32_t type = view.u16(at + 2), count = view.u32(at + 4);
  if (count != 1) return 1;
  const uint32_t value = type == kTypeShort  ? view.u16(at + 8)
                         : type == kTypeLong ? view.u32(at + 8)
                                             : 0;
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

}  // namespace

int exif_orientation(std::span<const std::byte> block) {
  const auto tiff = without_prefix(block);
  const bool little = ByteView(tiff).starts_with(0, std::string_view("II*\0", 4));
  if (!little && !ByteView(tiff).starts_with(0, std::string_view("MM\0*", 4))) return 1;
  ByteView view(tiff, little);
  const size_t directory = view.u32(4);
  const uint32_t entries = view.u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * kEntryBytes;
    const uint32_t tag = view.u16(at);
    if (!view.ok()) return 1;
    if (tag != kOrientationTag) continue;
    const int value = entry_value(view, at);
    return view.ok() ? value : 1;
  }
  return 1;
}

Image apply_orientation(Image stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  const bool swap = swaps_sides(orientation);
  const int32_t w = stored.width, h = stored.height;
  Image out(swap ? h : w, swap ? w : h);
  // Orientation says where row 0 and column 0 of the stored pixels belong; step through the output
  // in order and the input by a start and two strides.
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const ptrdiff_t along_x = from_right ? -3 : 3;
  const ptrdiff_t row = static_cast<ptrdiff_t>(stored.row_bytes());
  const ptrdiff_t along_y = from_bottom ? -row : row;
  const uint8_t* start =
      stored.rgb.data() + (from_right ? 3 * (w - 1) : 0) + (from_bottom ? row * (h - 1) : 0);
  const ptrdiff_t step_x = swap ? along_y : along_x, step_y = swap ? along_x : along_y;
  for (int32_t y = 0; y < out.height; ++y) {
    const uint8_t* from = start + y * step_y;
    uint8_t* to = out.row(y);
    for (int32_t x = 0; x < out.width; ++x, from += step_x, to += 3) std::copy_n(from, 3, to);
  }
  return out;
}

}  // namespace mm::image
