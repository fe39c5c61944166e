#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/base/result.h"
#include "lib/image/image.h"

namespace mm::image {

enum class Format {
  kUnknown,
  kJpeg,
  kPng,
  kWebp,
  kGif,
  kBmp,
  kTiff,
  kAvif,
  kHeif,
  kJpegXl,
  kJpeg2000,
  kPsd,
  kSvg
};

/// Decides by content, never by name. O(1); looks at the first 256 bytes at most.
Format sniff(std::span<const std::byte> file);
/// "JPEG", "PNG", "WebP", ...
std::string_view format_name(Format format);

/// Checked against the header before anything is allocated.
struct Limits {
  uint64_t max_pixels = 178'956'970;         ///< width x height; what Pillow refuses from
  int32_t max_side = 65'535;                 ///< pixels; the most that JPEG can say
  int32_t min_side = 1;                      ///< pixels of the shorter side
  double max_aspect = 0;                     ///< longer / shorter side; 0: no limit
  uint64_t max_png_chunk_bytes = 64U << 20;  ///< memory for one ancillary PNG chunk
  int32_t max_jpeg_scans = 500;              ///< progressive scans; more is an attack on time
};

/// What the header says. No pixel is decoded for it.
struct Header {
  Format format = Format::kUnknown;
  Size stored;            ///< as in the file
  int orientation = 1;    ///< 1..8, from JPEG's APP1, PNG's eXIf, WebP's EXIF
  Size upright;           ///< after orientation
  bool has_icc = false;   ///< a colour profile, which is ignored
  bool animated = false;  ///< more pictures follow the first (APNG, WebP, MPO); GIF: not known here
  bool adobe = false;     ///< JPEG: Adobe marker, so four-component samples are stored inverted
};

/// Reads sizes and orientation only: walks JPEG markers up to the first scan, PNG and WebP chunk
/// heads, GIF blocks up to the first frame. Thread-safe. Failure kinds: "empty", "not_an_image",
/// "unsupported_format" (message names the format or the feature), "truncated", "corrupt",
/// "too_large", "too_small", "too_thin" (message has the numbers and the limit's name).
Result<Header> probe(std::span<const std::byte> file, const Limits& limits = {});

}  // namespace mm::image
