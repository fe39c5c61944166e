// PNG by libpng. As in jpeg_reader.cpp, whatever calls the library is small and holds no object
// with a destructor, since errors arrive by longjmp.
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "lib/image/composite.h"
#include "lib/image/row_reader.h"

namespace mm::image {
namespace {

struct Session {
  png_structp codec = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> file;
  size_t at = 0;
  bool ended = false;
  bool interlaced = false;
  int channels = 0;
  size_t row_bytes = 0;
  int warnings = 0;
  char message[160] = {};
  char warning[160] = {};
};

[[noreturn]] void on_error(png_structp codec, png_const_charp text) {
  auto* session = static_cast<Session*>(png_get_error_ptr(codec));
  std::snprintf(session->message, sizeof(session->message), "%s", text);
  png_longjmp(codec, 1);
}

void on_warning(png_structp codec, png_const_charp text) {
  auto* session = static_cast<Session*>(png_get_error_ptr(codec));
  if (session->warnings++ == 0)
    std::snprintf(session->warning, sizeof(session->warning), "%s", text);
}

void on_read(png_structp codec, png_bytep out, size_t count) {
  auto* session = static_cast<Session*>(png_get_io_ptr(codec));
  if (count > session->file.size() - session->at) {
    session->ended = true;
    png_error(codec, "the file ends too early");
  }
  std::memcpy(out, session->file.data() + session->at, count);
  session->at += count;
}

// Chunks that only cost time and memory here: profiles and texts are never looked at.
void skip_chunks(png_structp codec) {
  static constexpr png_byte kSkipped[] = "iCCP\0tEXt\0zTXt\0iTXt\0sPLT\0hIST\0eXIf";
  png_set_keep_unknown_chunks(codec, PNG_HANDLE_CHUNK_NEVER, kSkipped, sizeof(kSkipped) / 5);
}

bool start(Session& s, const Limits& limits) {
  s.codec = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
  if (s.codec == nullptr) return false;
  s.info = png_create_info_struct(s.codec);
  if (s.info == nullptr) return false;
  if (setjmp(png_jmpbuf(s.codec)) != 0) return false;
  png_set_read_fn(s.codec, &s, on_read);
  const auto side = static_cast<png_uint_32>(limits.max_side);
  png_set_user_limits(s.codec, side, side);
  png_set_chunk_malloc_max(s.codec, limits.max_png_chunk_bytes);
  skip_chunks(s.codec);
  png_read_info(s.codec, s.info);
  png_set_expand(s.codec);
  png_set_scale_16(s.codec);
  png_set_gray_to_rgb(s.codec);
  s.interlaced = png_set_interlace_handling(s.codec) > 1;
  png_read_update_info(s.codec, s.info);
  s.channels = png_get_channels(s.codec, s.info);
  s.row_bytes = png_get_rowbytes(s.codec, s.info);
  return true;
}

bool read_row(Session& s, uint8_t* row) {
  if (setjmp(png_jmpbuf(s.codec)) != 0) return false;
  png_read_row(s.codec, row, nullptr);
  return true;
}

bool read_all(Session& s, png_bytepp rows) {
  if (setjmp(png_jmpbuf(s.codec)) != 0) return false;
  png_read_image(s.codec, rows);
  return true;
}

bool finish_file(Session& s) {
  if (setjmp(png_jmpbuf(s.codec)) != 0) return false;
  png_read_end(s.codec, nullptr);
  return true;
}

class PngReader final : public RowReader {
 public:
  PngReader(const Header& header, Alpha alpha) : header_(header), alpha_(alpha) {}
  ~PngReader() override { png_destroy_read_struct(&session_.codec, &session_.info, nullptr); }

  std::optional<Failure> open(std::span<const std::byte> file, const Limits& limits) {
    session_.file = file;
    if (!start(session_, limits)) return failure();
    const size_t width = header_.stored.width;
    const bool known = session_.channels == 3 || session_.channels == 4;
    if (!known || session_.row_bytes != width * session_.channels) {
      return Failure{"corrupt",
                     fmt::format("PNG: {} bytes a row for {} pixels", session_.row_bytes, width)};
    }
    row_.resize(session_.row_bytes);
    return std::nullopt;
  }

  std::optional<Failure> read(uint8_t* out, int32_t count) override {
    if (session_.interlaced && whole_.empty()) {
      if (auto failed = read_interlaced()) return failed;
    }
    for (int32_t i = 0; i < count; ++i, ++next_row_, out += size_t{3} * header_.stored.width) {
      const uint8_t* row = row_.data();
      if (session_.interlaced) {
        row = whole_.data() + session_.row_bytes * next_row_;
      } else if (!read_row(session_, row_.data())) {
        return failure();
      }
      emit(row, out);
    }
    return std::nullopt;
  }

  std::optional<Failure> finish(Decoded& out) override {
    if (!finish_file(session_)) return failure();
    if (session_.warnings > 0) out.notes.push_back(fmt::format("png: {}", session_.warning));
    const size_t left = session_.file.size() - session_.at;
    if (left > 0) out.notes.push_back(fmt::format("trailing bytes: {}", left));
    return std::nullopt;
  }

 private:
  void emit(const uint8_t* row, uint8_t* out) const {
    if (session_.channels == 3) {
      std::copy_n(row, session_.row_bytes, out);
    } else {
      composite_row(row, out, header_.stored.width, alpha_);
    }
  }

  // Adam7 visits each row several times, so the picture must be held whole.
  std::optional<Failure> read_interlaced() {
    whole_.resize(session_.row_bytes * header_.stored.height);
    std::vector<png_bytep> rows(header_.stored.height);
    for (size_t y = 0; y < rows.size(); ++y) rows[y] = whole_.data() + session_.row_bytes * y;
    if (!read_all(session_, rows.data())) return failure();
    return std::nullopt;
  }

  Failure failure() const {
    const char* text = session_.message[0] != '\0' ? session_.message : "libpng cannot be started";
    return {session_.ended ? "truncated" : "corrupt", fmt::format("PNG: {}", text)};
  }

  Header header_;
  Alpha alpha_;
  Session session_;
  int32_t next_row_ = 0;
  std::vector<uint8_t> row_, whole_;
};

}  // namespace

OpenedReader open_png(std::span<const std::byte> file, const Header& header,
                      const DecodeOptions& options) {
  auto reader = std::make_unique<PngReader>(header, options.alpha);
  if (auto failure = reader->open(file, options.limits)) return *failure;
  return std::unique_ptr<RowReader>(std::move(reader));
}

}  // namespace mm::image
