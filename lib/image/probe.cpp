#include "lib/image/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "lib/image/byte_view.h"
#include "lib/image/exif.h"

namespace mm::image {
namespace {

using std::string_view;
using namespace std::string_view_literals;

struct Magic {
  Format format;
  size_t at;
  string_view bytes;
};
constexpr std::array kMagics = {
    Magic{Format::kJpeg, 0, "\xFF\xD8\xFF"sv},
    Magic{Format::kPng, 0, "\x89PNG\r\n\x1A\n"sv},
    Magic{Format::kGif, 0, "GIF87a"sv},
    Magic{Format::kGif, 0, "GIF89a"sv},
    Magic{Format::kTiff, 0, "II*\0"sv},
    Magic{Format::kTiff, 0, "MM\0*"sv},
    Magic{Format::kPsd, 0, "8BPS"sv},
    Magic{Format::kJpegXl, 0, "\xFF\x0A"sv},
    Magic{Format::kJpegXl, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv},
    Magic{Format::kJpeg2000, 0, "\0\0\0\x0CjP  \r\n\x87\n"sv},
    Magic{Format::kJpeg2000, 0, "\xFF\x4F\xFF\x51"sv},
    Magic{Format::kAvif, 4, "ftypavi"sv},
    Magic{Format::kHeif, 4, "ftyphei"sv},
    Magic{Format::kHeif, 4, "ftypmif1"sv},
    Magic{Format::kSvg, 0, "<svg"sv},
};

Failure truncated(string_view what, size_t size_bytes) {
  return {"truncated",
          fmt::format("{} ends inside its header, after {} bytes; fetch the file again", what,
                      size_bytes)};
}

Failure not_an_image(std::span<const std::byte> file) {
  std::string start;
  for (const std::byte b : file.first(std::min<size_t>(file.size(), 12))) {
    const char c = static_cast<char>(b);
    start += c >= ' ' && c <= '~' ? std::string(1, c)
                                  : fmt::format("\\x{:02x}", std::to_integer<int>(b));
  }
  return {"not_an_image", fmt::format("no known picture format: {} bytes beginning with \"{}\"",
                                      file.size(), start)};
}

// JPEG (ISO 10918-1 annex B): markers are FF xx, most followed by a big-endian length that counts
// itself.
struct JpegWalk {
  ByteView view;
  Header header;
  bool has_exif = false;

  void read_application_segment(uint32_t marker, size_t at, size_t length) {
    const auto body = view.slice(at + 2, length - 2);
    const ByteView content(body);
    if (marker == 0xE1 && !has_exif && content.starts_with(0, "Exif\0\0"sv)) {
      has_exif = true;
      header.orientation = exif_orientation(body);
    }
    if (marker == 0xE2 && content.starts_with(0, "ICC_PROFILE\0"sv)) header.has_icc = true;
    if (marker == 0xEE && content.starts_with(0, "Adobe"sv)) header.adobe = true;
  }

  static bool is_frame(uint32_t marker) {
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
  }

  // Walks to the first scan, since application segments may also follow the frame header.
  std::optional<Failure> run() {
    size_t at = 2;
    while (true) {
      while (at < view.size() && view.u8(at) != 0xFF) ++at;
      while (at < view.size() && view.u8(at) == 0xFF) ++at;
      const uint32_t marker = view.u8(at++);
      if (!view.ok()) return truncated("JPEG", view.size());
      if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
      if (marker == 0xDA && header.stored.width > 0) return std::nullopt;
      if (marker == 0xD9 || marker == 0xDA)
        return Failure{"corrupt", "JPEG has no frame header before its data"};
      const uint32_t length = view.u16(at);
      if (!view.ok()) return truncated("JPEG", view.size());
      if (length < 2)
        return Failure{"corrupt", fmt::format("JPEG segment at byte {} has length {}", at, length)};
      if (is_frame(marker))
        header.stored = {static_cast<int32_t>(view.u16(at + 5)),
                         static_cast<int32_t>(view.u16(at + 3))};
      if (!view.ok()) return truncated("JPEG", view.size());
      if (is_frame(marker) && (header.stored.width == 0 || header.stored.height == 0)) {
        return Failure{"corrupt",
                       fmt::format("JPEG says {} x {}", header.stored.width, header.stored.height)};
      }
      read_application_segment(marker, at, length);
      at += length;
    }
  }
};

// PNG (third edition, section 5): after the signature, chunks of length, type, data, CRC, all
// big-endian.
std::optional<Failure> walk_png(ByteView view, Header& header) {
  if (!view.starts_with(12, "IHDR"sv)) {
    if (view.size() < 33) return truncated("PNG", view.size());
    return Failure{"corrupt", "PNG does not begin with IHDR"};
  }
  const uint32_t width = view.u32(16), height = view.u32(20);
  if (!view.ok()) return truncated("PNG", view.size());
  if (width == 0 || height == 0 || width > 0x7FFFFFFF || height > 0x7FFFFFFF) {
    return Failure{"corrupt", fmt::format("PNG says {} x {}", width, height)};
  }
  header.stored = {static_cast<int32_t>(width), static_cast<int32_t>(height)};
  for (size_t at = 8; at + 12 <= view.size();) {
    const size_t length = view.u32(at);
    if (view.starts_with(at + 4, "eXIf"sv))
      header.orientation = exif_orientation(view.slice(at + 8, length));
    if (view.starts_with(at + 4, "iCCP"sv)) header.has_icc = true;
    if (view.starts_with(at + 4, "IEND"sv)) break;
    at += 12 + length;
  }
  return std::nullopt;
}

std::optional<Failure> over_limits(const Header& header, const Limits& limits) {
  const Size s = header.stored;
  const uint64_t pixels = static_cast<uint64_t>(s.width) * static_cast<uint64_t>(s.height);
  if (pixels > limits.max_pixels) {
    return Failure{
        "too_large",
        fmt::format("{} says {} x {} = {} pixels; the limit max_pixels is {}",
                    format_name(header.format), s.width, s.height, pixels, limits.max_pixels)};
  }
  if (std::max(s.width, s.height) > limits.max_side) {
    return Failure{"too_large",
                   fmt::format("{} says {} x {}; the limit max_side is {}",
                               format_name(header.format), s.width, s.height, limits.max_side)};
  }
  return std::nullopt;
}

}  // namespace

Format sniff(std::span<const std::byte> file) {
  const ByteView view(file);
  for (const Magic& m : kMagics) {
    if (view.starts_with(m.at, m.bytes)) return m.format;
  }
  if (view.starts_with(0, "RIFF"sv) && view.starts_with(8, "WEBP"sv)) return Format::kWebp;
  // "BM" alone is two letters of text; the reserved words of the header are zero.
  if (view.starts_with(0, "BM"sv) && view.starts_with(6, "\0\0\0\0"sv)) return Format::kBmp;
  return Format::kUnknown;
}

string_view format_name(Format format) {
  switch (format) {
    case Format::kJpeg:
      return "JPEG";
    case Format::kPng:
      return "PNG";
    case Format::kWebp:
      return "WebP";
    case Format::kGif:
      return "GIF";
    case Format::kBmp:
      return "BMP";
    case Format::kTiff:
      return "TIFF";
    case Format::kAvif:
      return "AVIF";
    case Format::kHeif:
      return "HEIF";
    case Format::kJpegXl:
      return "JPEG XL";
    case Format::kJpeg2000:
      return "JPEG 2000";
    case Format::kPsd:
      return "PSD";
    case Format::kSvg:
      return "SVG";
    case Format::kUnknown:
      break;
  }
  return "unknown";
}

Result<Header> probe(std::span<const std::byte> file, const Limits& limits) {
  if (file.empty()) return Failure{"empty", "empty file (0 bytes)"};
  Header header{.format = sniff(file)};
  std::optional<Failure> failure;
  if (header.format == Format::kJpeg) {
    JpegWalk walk{ByteView(file), header};
    failure = walk.run();
    header = walk.header;
  } else if (header.format == Format::kPng) {
    failure = walk_png(ByteView(file), header);
  } else if (header.format == Format::kUnknown) {
    failure = not_an_image(file);
  } else {
    failure = Failure{"unsupported_format",
                      fmt::format("{} pictures are not read yet; convert to PNG or JPEG",
                                  format_name(header.format))};
  }
  if (!failure) failure = over_limits(header, limits);
  if (failure) return *failure;
  header.upright = header.stored;
  if (swaps_sides(header.orientation)) std::swap(header.upright.width, header.upright.height);
  return header;
}

}  // namespace mm::image
