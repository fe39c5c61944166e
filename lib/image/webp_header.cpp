// WebP (RFC 9649): a RIFF file of chunks, each a four-letter type, a little-endian length and data
// padded to an even length.
#include <fmt/format.h>

#include "lib/image/byte_view.h"
#include "lib/image/exif.h"
#include "lib/image/header_walk.h"

namespace mm::image {
namespace {

using namespace std::string_view_literals;

constexpr size_t kFileHeadBytes = 12, kChunkHeadBytes = 8;

// Sizes of 14 bits in a lossy or lossless bitstream, of 24 bits in the extended header.
std::optional<Size> size_of_chunk(ByteView& view, size_t at) {
  const size_t body = at + kChunkHeadBytes;
  if (view.starts_with(at, "VP8X"sv)) {
    const auto side = [&](size_t from) {
      return static_cast<int32_t>((view.u16(from) | view.u8(from + 2) << 16) + 1);
    };
    return Size{side(body + 4), side(body + 7)};
  }
  if (view.starts_with(at, "VP8L"sv)) {
    const uint32_t bits = view.u32(body + 1);
    return Size{static_cast<int32_t>((bits & 0x3FFF) + 1),
                static_cast<int32_t>((bits >> 14 & 0x3FFF) + 1)};
  }
  if (view.starts_with(at, "VP8 "sv)) {
    return Size{static_cast<int32_t>(view.u16(body + 6) & 0x3FFF),
                static_cast<int32_t>(view.u16(body + 8) & 0x3FFF)};
  }
  return std::nullopt;
}

void read_extras(ByteView view, Header& header) {
  for (size_t at = kFileHeadBytes; at + kChunkHeadBytes <= view.size();) {
    const size_t length = view.u32(at + 4);
    if (view.starts_with(at, "EXIF"sv))
      header.orientation = exif_orientation(view.slice(at + kChunkHeadBytes, length));
    if (view.starts_with(at, "ICCP"sv)) header.has_icc = true;
    if (view.starts_with(at, "ANIM"sv)) header.animated = true;
    at += kChunkHeadBytes + length + (length & 1);
  }
}

}  // namespace

std::optional<Failure> walk_webp(std::span<const std::byte> file, Header& header) {
  ByteView view(file, /*little_endian=*/true);
  const auto size = size_of_chunk(view, kFileHeadBytes);
  if (view.size() < kFileHeadBytes + kChunkHeadBytes || !view.ok())
    return ends_in_header(Format::kWebp, view.size());
  if (!size) return Failure{"corrupt", "WebP does not begin with VP8, VP8L or VP8X"};
  if (size->width == 0 || size->height == 0)
    return Failure{"corrupt", fmt::format("WebP says {} x {}", size->width, size->height)};
  header.stored = *size;
  // Only the extended form has anything but pixels.
  if (view.starts_with(kFileHeadBytes, "VP8X"sv)) read_extras(view, header);
  return std::nullopt;
}

}  // namespace mm::image
