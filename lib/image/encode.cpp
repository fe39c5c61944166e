#include "lib/image/encode.h"

#include <fmt/format.h>
#include <jpeglib.h>  // needs <cstdio> before it
#include <png.h>
#include <webp/encode.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "lib/base/error.h"

namespace mm::image {
namespace {

// The codec and its output live outside the functions that libjpeg may leave by longjmp.
struct JpegSession {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump{};
  unsigned char* bytes = nullptr;
  unsigned long size_bytes = 0;  // NOLINT(google-runtime-int): libjpeg's type
  char message[JMSG_LENGTH_MAX] = {};

  JpegSession() = default;
  JpegSession(const JpegSession&) = delete;
  ~JpegSession() {
    jpeg_destroy_compress(&codec);
    std::free(bytes);  // NOLINT: allocated by libjpeg with malloc
  }
};

[[noreturn]] void fail(j_common_ptr codec) {
  auto* session = static_cast<JpegSession*>(codec->client_data);
  codec->err->format_message(codec, session->message);
  std::longjmp(session->jump, 1);
}

void configure(JpegSession& s, const Image& image, const JpegOptions& options) {
  s.codec.image_width = static_cast<JDIMENSION>(image.width);
  s.codec.image_height = static_cast<JDIMENSION>(image.height);
  s.codec.input_components = 3;
  s.codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&s.codec);
  jpeg_set_quality(&s.codec, options.quality, TRUE);
  s.codec.dct_method = JDCT_ISLOW;
  s.codec.optimize_coding = options.optimise ? TRUE : FALSE;
  const int sampling = options.full_chroma ? 1 : 2;
  s.codec.comp_info[0].h_samp_factor = sampling;
  s.codec.comp_info[0].v_samp_factor = sampling;
}

bool compress(JpegSession& s, const Image& image, const JpegOptions& options) {
  s.codec.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = fail;
  s.codec.client_data = &s;
  if (setjmp(s.jump) != 0) return false;
  jpeg_create_compress(&s.codec);
  jpeg_mem_dest(&s.codec, &s.bytes, &s.size_bytes);
  configure(s, image, options);
  jpeg_start_compress(&s.codec, TRUE);
  while (s.codec.next_scanline < s.codec.image_height) {
    auto* row = const_cast<JSAMPROW>(image.row(static_cast<int32_t>(s.codec.next_scanline)));
    jpeg_write_scanlines(&s.codec, &row, 1);
  }
  jpeg_finish_compress(&s.codec);
  return true;
}

struct PngSession {
  png_structp codec = nullptr;
  png_infop info = nullptr;
  std::string bytes;
  char message[160] = {};
  ~PngSession() { png_destroy_write_struct(&codec, &info); }
};

[[noreturn]] void on_png_error(png_structp codec, png_const_charp text) {
  auto* session = static_cast<PngSession*>(png_get_error_ptr(codec));
  std::snprintf(session->message, sizeof(session->message), "%s", text);
  png_longjmp(codec, 1);
}

void on_png_write(png_structp codec, png_bytep bytes, size_t count) {
  static_cast<PngSession*>(png_get_io_ptr(codec))
      ->bytes.append(reinterpret_cast<const char*>(bytes), count);
}

void ignore_png_warning(png_structp, png_const_charp) {}

bool compress(PngSession& s, const Image& image, int level) {
  s.codec = png_create_write_struct(PNG_LIBPNG_VER_STRING, &s, on_png_error, ignore_png_warning);
  if (s.codec == nullptr) return false;
  s.info = png_create_info_struct(s.codec);
  if (s.info == nullptr || setjmp(png_jmpbuf(s.codec)) != 0) return false;
  png_set_write_fn(s.codec, &s, on_png_write, nullptr);
  png_set_compression_level(s.codec, level);
  png_set_IHDR(s.codec, s.info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(s.codec, s.info);
  for (int32_t y = 0; y < image.height; ++y) png_write_row(s.codec, image.row(y));
  png_write_end(s.codec, nullptr);
  return true;
}

}  // namespace

std::string encode_jpeg(const Image& image, const JpegOptions& options) {
  JpegSession session;
  if (!compress(session, image, options)) {
    throw InternalError("encode_jpeg: {} x {}: {}", image.width, image.height, session.message);
  }
  return {reinterpret_cast<const char*>(session.bytes), session.size_bytes};
}

std::string encode_webp(const Image& image, const WebpOptions& options) {
  uint8_t* bytes = nullptr;
  const auto stride = static_cast<int>(image.row_bytes());
  const size_t size_bytes =
      options.lossless
          ? WebPEncodeLosslessRGB(image.rgb.data(), image.width, image.height, stride, &bytes)
          : WebPEncodeRGB(image.rgb.data(), image.width, image.height, stride, options.quality,
                          &bytes);
  const std::unique_ptr<uint8_t, void (*)(void*)> owner(bytes, WebPFree);
  if (size_bytes == 0) {
    throw InternalError("encode_webp: {} x {}: libwebp refused it", image.width, image.height);
  }
  return {reinterpret_cast<const char*>(bytes), size_bytes};
}

std::string encode_png(const Image& image, int level) {
  PngSession session;
  if (!compress(session, image, level)) {
    throw InternalError("encode_png: {} x {}: {}", image.width, image.height, session.message);
  }
  return std::move(session.bytes);
}

}  // namespace mm::image
