// JPEG (ISO 10918-1 annex B): markers are FF xx, most followed by a big-endian length that counts
// itself.
#include <fmt/format.h>

#include "lib/image/byte_view.h"
#include "lib/image/exif.h"
#include "lib/image/header_walk.h"

namespace mm::image {
namespace {

using namespace std::string_view_literals;

class JpegWalk {
 public:
  JpegWalk(std::span<const std::byte> file, Header& header) : view_(file), header_(header) {}

  // Walks to the first scan, since application segments may also follow the frame header.
  std::optional<Failure> run() {
    for (size_t at = 2;;) {
      while (at < view_.size() && view_.u8(at) != 0xFF) ++at;
      while (at < view_.size() && view_.u8(at) == 0xFF) ++at;
      const uint32_t marker = view_.u8(at++);
      if (!view_.ok()) return ends_in_header(Format::kJpeg, view_.size());
      if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
      if (marker == 0xDA && header_.stored.width > 0) return std::nullopt;
      if (marker == 0xD9 || marker == 0xDA)
        return Failure{"corrupt", "JPEG has no frame header before its data"};
      const uint32_t length = view_.u16(at);
      if (!view_.ok()) return ends_in_header(Format::kJpeg, view_.size());
      if (length < 2)
        return Failure{"corrupt", fmt::format("JPEG segment at byte {} has length {}", at, length)};
      if (is_frame(marker)) {
        if (auto failure = read_frame(at)) return failure;
      }
      read_application_segment(marker, at, length);
      at += length;
    }
  }

 private:
  static bool is_frame(uint32_t marker) {
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
  }

  std::optional<Failure> read_frame(size_t at) {
    const uint32_t bits = view_.u8(at + 2);
    header_.stored = {static_cast<int32_t>(view_.u16(at + 5)),
                      static_cast<int32_t>(view_.u16(at + 3))};
    if (!view_.ok()) return ends_in_header(Format::kJpeg, view_.size());
    if (header_.stored.width == 0 || header_.stored.height == 0) {
      return Failure{"corrupt",
                     fmt::format("JPEG says {} x {}", header_.stored.width, header_.stored.height)};
    }
    if (bits == 8) return std::nullopt;
    return Failure{"unsupported_format",
                   fmt::format("JPEG with samples of {} bits; 8 are read; convert it", bits)};
  }

  void read_application_segment(uint32_t marker, size_t at, size_t length) {
    const auto body = view_.slice(at + 2, length - 2);
    const ByteView content(body);
    if (marker == 0xE1 && !has_exif_ && content.starts_with(0, "Exif\0\0"sv)) {
      has_exif_ = true;
      header_.orientation = exif_orientation(body);
    }
    if (marker == 0xE2 && content.starts_with(0, "ICC_PROFILE\0"sv)) header_.has_icc = true;
    if (marker == 0xE2 && content.starts_with(0, "MPF\0"sv)) header_.animated = true;
    if (marker == 0xEE && content.starts_with(0, "Adobe"sv)) header_.adobe = true;
  }

  ByteView view_;
  Header& header_;
  bool has_exif_ = false;
};

}  // namespace

std::optional<Failure> walk_jpeg(std::span<const std::byte> file, Header& header) {
  return JpegWalk(file, header).run();
}

}  // namespace mm::image
