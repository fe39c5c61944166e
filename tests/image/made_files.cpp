#include "tests/image/made_files.h"

#include <jpeglib.h>  // needs <cstdio> before it
#include <zlib.h>

#include <cstdio>
#include <cstdlib>

namespace mm::image::testing {
namespace {

std::string big_endian(uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string little_endian16(int32_t value) {
  return {static_cast<char>(value), static_cast<char>(value >> 8)};
}

// Codes of 9 bits, least bit first.
class CodeWriter {
 public:
  void put(uint32_t code) {
    held_ |= code << bits_;
    for (bits_ += 9; bits_ >= 8; bits_ -= 8, held_ >>= 8) out_ += static_cast<char>(held_);
  }
  std::string finish() {
    if (bits_ > 0) out_ += static_cast<char>(held_);
    return std::move(out_);
  }

 private:
  std::string out_;
  uint32_t held_ = 0;
  int bits_ = 0;
};

std::string pixel_blocks(const std::vector<uint8_t>& indices) {
  constexpr uint32_t kClear = 256, kEnd = 257;
  CodeWriter codes;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i % 100 == 0) codes.put(kClear);
    codes.put(indices[i]);
  }
  codes.put(kEnd);
  const std::string data = codes.finish();
  std::string out(1, '\x08');
  for (size_t at = 0; at < data.size(); at += 255) {
    const std::string block = data.substr(at, 255);
    out += static_cast<char>(block.size()) + block;
  }
  return out + '\0';
}

}  // namespace

std::string arithmetic_jpeg(const Image& image) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&codec, &bytes, &count);
  codec.image_width = static_cast<JDIMENSION>(image.width);
  codec.image_height = static_cast<JDIMENSION>(image.height);
  codec.input_components = 3;
  codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&codec);
  codec.arith_code = TRUE;
  jpeg_start_compress(&codec, TRUE);
  for (int32_t y = 0; y < image.height; ++y) {
    auto* row = const_cast<JSAMPROW>(image.row(y));
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  std::string out(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&codec);
  std::free(bytes);  // NOLINT: allocated by libjpeg with malloc
  return out;
}

std::string insert(std::string_view file, size_t at, std::string_view inserted) {
  return std::string(file.substr(0, at)) + std::string(inserted) + std::string(file.substr(at));
}

std::string jpeg_segment(uint8_t marker, std::string_view content) {
  return std::string("\xFF") + static_cast<char>(marker) +
         big_endian(static_cast<uint32_t>(content.size() + 2), 2) + std::string(content);
}

std::string png_chunk(std::string_view type, std::string_view content) {
  const std::string body = std::string(type) + std::string(content);
  const auto checksum =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(content.size()), 4) + body +
         big_endian(static_cast<uint32_t>(checksum), 4);
}

std::string make_gif(const GifRecipe& r) {
  std::string out = "GIF89a" + little_endian16(r.screen.width) + little_endian16(r.screen.height);
  out += std::string("\xF7\0\0", 3);  // a table of 256 colours
  for (size_t i = 0; i < 256; ++i) {
    const Colour c = i < r.colours.size() ? r.colours[i] : Colour{};
    out += {static_cast<char>(c.r), static_cast<char>(c.g), static_cast<char>(c.b)};
  }
  if (r.transparent >= 0) {
    out += std::string("\x21\xF9\x04\x01\0\0", 6);
    out += static_cast<char>(r.transparent);
    out += '\0';
  }
  out += '\x2C';
  for (const int32_t v : {r.frame.left, r.frame.top, r.frame.width, r.frame.height})
    out += little_endian16(v);
  out += static_cast<char>(r.interlaced ? 0x40 : 0);
  out += pixel_blocks(r.indices);
  return r.end_mark ? out + '\x3B' : out;
}

}  // namespace mm::image::testing
