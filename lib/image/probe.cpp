#include "lib/image/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "lib/image/byte_view.h"
#include "lib/image/exif.h"
#include "lib/image/header_walk.h"

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
    Magic{Format::kTiff, 0, "II+\0"sv},
    Magic{Format::kTiff, 0, "MM\0+"sv},
    Magic{Format::kPsd, 0, "8BPS"sv},
    Magic{Format::kJpegXl, 0, "\xFF\x0A"sv},
    Magic{Format::kJpegXl, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv},
    Magic{Format::kJpeg2000, 0, "\0\0\0\x0CjP  \r\n\x87\n"sv},
    Magic{Format::kJpeg2000, 0, "\xFF\x4F\xFF\x51"sv},
    Magic{Format::kAvif, 4, "ftypavi"sv},
    Magic{Format::kHeif, 4, "ftyphei"sv},
    Magic{Format::kHeif, 4, "ftyphev"sv},
    Magic{Format::kHeif, 4, "ftypmif1"sv},
    Magic{Format::kHeif, 4, "ftypmsf1"sv},
};

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

Failure outside(const Header& header, string_view kind, const std::string& why) {
  return {std::string(kind), fmt::format("{} says {} x {}{}", format_name(header.format),
                                         header.stored.width, header.stored.height, why)};
}

std::optional<Failure> over_limits(const Header& header, const Limits& limits) {
  const auto [width, height] = header.stored;
  const uint64_t pixels = static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
  const auto [shorter, longer] = std::minmax(width, height);
  if (pixels > limits.max_pixels) {
    return outside(
        header, "too_large",
        fmt::format(" = {} pixels; the limit max_pixels is {}", pixels, limits.max_pixels));
  }
  if (longer > limits.max_side)
    return outside(header, "too_large", fmt::format("; the limit max_side is {}", limits.max_side));
  if (shorter < limits.min_side)
    return outside(header, "too_small", fmt::format("; the limit min_side is {}", limits.min_side));
  if (limits.max_aspect > 0 && longer > limits.max_aspect * shorter) {
    return outside(header, "too_thin",
                   fmt::format("; the limit max_aspect is {}", limits.max_aspect));
  }
  return std::nullopt;
}

// Text before "<svg" is what XML allows there: a declaration, a comment, a document type.
bool is_svg(const std::span<const std::byte> file) {
  const auto start = file.first(std::min<size_t>(file.size(), 256));
  const string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  const size_t first = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  if (first == string_view::npos) return false;
  const string_view rest = text.substr(first);
  return rest.starts_with("<svg") || rest.starts_with("<!DOCTYPE svg") ||
         ((rest.starts_with("<?xml") || rest.starts_with("<!--")) &&
          rest.find("<svg") != string_view::npos);
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
  return is_svg(file) ? Format::kSvg : Format::kUnknown;
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

Failure ends_in_header(Format format, size_t size_bytes) {
  return {"truncated",
          fmt::format("{} ends inside its header, after {} bytes; fetch the file again",
                      format_name(format), size_bytes)};
}

namespace {

std::optional<Failure> walk(std::span<const std::byte> file, Header& header) {
  switch (header.format) {
    case Format::kJpeg:
      return walk_jpeg(file, header);
    case Format::kPng:
      return walk_png(file, header);
    case Format::kWebp:
      return walk_webp(file, header);
    case Format::kGif:
      return walk_gif(file, header);
    case Format::kUnknown:
      return not_an_image(file);
    default:
      return Failure{"unsupported_format",
                     fmt::format("{} pictures are not read; convert to PNG, JPEG or WebP",
                                 format_name(header.format))};
  }
}

}  // namespace

Result<Header> probe(std::span<const std::byte> file, const Limits& limits) {
  if (file.empty()) return Failure{"empty", "empty file (0 bytes)"};
  Header header{.format = sniff(file)};
  auto failure = walk(file, header);
  if (!failure) failure = over_limits(header, limits);
  if (failure) return *failure;
  header.upright = header.stored;
  if (swaps_sides(header.orientation)) std::swap(header.upright.width, header.upright.height);
  return header;
}

}  // namespace mm::image
