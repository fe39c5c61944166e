// GIF89a: a logical screen, then blocks; extensions and pixels are chains of sub-blocks of at most
// 255 bytes that end with an empty one.
#include <fmt/format.h>

#include <algorithm>

#include "lib/image/byte_view.h"
#include "lib/image/header_walk.h"

namespace mm::image {
namespace {

constexpr size_t kScreenBytes = 13;
constexpr uint32_t kExtension = 0x21, kFrame = 0x2C;

size_t colour_table_bytes(uint32_t flags) {
  return (flags & 0x80) != 0 ? size_t{3} << ((flags & 7) + 1) : 0;
}

// Behind a chain of sub-blocks.
size_t skip_blocks(ByteView& view, size_t at) {
  while (view.ok()) {
    const uint32_t length = view.u8(at++);
    if (length == 0) break;
    at += length;
  }
  return at;
}

}  // namespace

// A first frame that leaves the screen makes it larger, as decoders in use have it.
std::optional<Failure> walk_gif(std::span<const std::byte> file, Header& header) {
  ByteView view(file, /*little_endian=*/true);
  auto width = static_cast<int32_t>(view.u16(6)), height = static_cast<int32_t>(view.u16(8));
  size_t at = kScreenBytes + colour_table_bytes(view.u8(10));
  while (view.ok() && view.u8(at) == kExtension) at = skip_blocks(view, at + 2);
  const uint32_t block = view.u8(at);
  const auto left = static_cast<int32_t>(view.u16(at + 1)),
             top = static_cast<int32_t>(view.u16(at + 3)),
             frame_width = static_cast<int32_t>(view.u16(at + 5)),
             frame_height = static_cast<int32_t>(view.u16(at + 7));
  if (!view.ok()) return ends_in_header(Format::kGif, view.size());
  if (block != kFrame) return Failure{"corrupt", "GIF has no frame"};
  if (frame_width == 0 || frame_height == 0)
    return Failure{"corrupt", fmt::format("GIF says {} x {}", frame_width, frame_height)};
  header.stored = {std::max(width, left + frame_width), std::max(height, top + frame_height)};
  return std::nullopt;
}

}  // namespace mm::image
