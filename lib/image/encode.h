#pragma once
#include <string>

#include "lib/image/image.h"

namespace mm::image {

struct JpegOptions {
  int quality = 95;          ///< 1..100, libjpeg's scale
  bool full_chroma = false;  ///< 4:4:4 instead of 4:2:0
  bool optimise = true;      ///< tables made for the picture: some 8 % smaller, a second pass
};

/// A whole JPEG file, baseline, accurate DCT: equal bytes for equal pictures and library version.
/// Throws InternalError on an empty picture.
std::string encode_jpeg(const Image& image, const JpegOptions& options = {});

struct WebpOptions {
  float quality = 90;     ///< 0..100, libwebp's scale
  bool lossless = false;  ///< exact; `quality` is not used
};

/// A whole WebP file without metadata, libwebp's default effort: equal bytes for equal pictures and
/// library version. Sides 1 to 16383, else InternalError.
std::string encode_webp(const Image& image, const WebpOptions& options = {});

/// A whole PNG file: 8-bit RGB, lossless. `level` is zlib's, 0..9.
std::string encode_png(const Image& image, int level = 6);

}  // namespace mm::image
