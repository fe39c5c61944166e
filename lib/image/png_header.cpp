// PNG (third edition, section 5): after the signature, chunks of length, type, data, CRC, all
// big-endian.
#include <fmt/format.h>

#include "lib/image/byte_view.h"
#include "lib/image/exif.h"
#include "lib/image/header_walk.h"

namespace mm::image {

using namespace std::string_view_literals;

std::optional<Failure> walk_png(std::span<const std::byte> file, Header& header) {
  ByteView view(file);
  if (!view.starts_with(12, "IHDR"sv)) {
    if (view.size() < 33) return ends_in_header(Format::kPng, view.size());
    return Failure{"corrupt", "PNG does not begin with IHDR"};
  }
  const uint32_t width = view.u32(16), height = view.u32(20);
  if (!view.ok()) return ends_in_header(Format::kPng, view.size());
  if (width == 0 || height == 0 || width > 0x7FFFFFFF || height > 0x7FFFFFFF) {
    return Failure{"corrupt", fmt::format("PNG says {} x {}", width, height)};
  }
  header.stored = {static_cast<int32_t>(width), static_cast<int32_t>(height)};
  for (size_t at = 8; at + 12 <= view.size();) {
    const size_t length = view.u32(at);
    if (view.starts_with(at + 4, "eXIf"sv))
      header.orientation = exif_orientation(view.slice(at + 8, length));
    if (view.starts_with(at + 4, "iCCP"sv)) header.has_icc = true;
    if (view.starts_with(at + 4, "acTL"sv)) header.animated = true;
    if (view.starts_with(at + 4, "IEND"sv)) break;
    at += 12 + length;
  }
  return std::nullopt;
}

}  // namespace mm::image
