// JPEG by libjpeg(-turbo). The library reports errors by longjmp, so every function that calls it
// is small, holds no object with a destructor, and keeps what must survive the jump in the session.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>  // needs <cstdio> before it

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <string_view>

#include "lib/image/row_reader.h"

namespace mm::image {
namespace {

struct Session {
  jpeg_decompress_struct codec{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  int max_scans = 0;
  int error_code = 0;
  int64_t stray_bytes = 0;  // between segments
  // Of restart intervals: bytes left over, codes that no table has, intervals that end early.
  int64_t left_over = 0, bad_codes = 0, early_ends = 0;
  bool damage_open = false;  // no restart marker has come in turn since
  bool odd_header = false;
  bool scans_exceeded = false;
  char message[JMSG_LENGTH_MAX] = {};
};

// What is refused says this message, of the damage that came first.
void keep_message(j_common_ptr codec) {
  auto* session = static_cast<Session*>(codec->client_data);
  session->error_code = codec->err->msg_code;
  codec->err->format_message(codec, session->message);
}

[[noreturn]] void fail(j_common_ptr codec) {
  auto* session = static_cast<Session*>(codec->client_data);
  if (!session->damage_open) keep_message(codec);
  std::longjmp(session->jump, 1);
}

bool is_restart(int marker) { return marker >= 0xD0 && marker <= 0xD7; }

// Counts damage that the next restart marker may end.
void open_damage(j_common_ptr codec, int64_t& count, int64_t amount) {
  auto* session = static_cast<Session*>(codec->client_data);
  if (!session->damage_open) keep_message(codec);
  session->damage_open = true;
  count += amount;
}

// Traces tell what the library met: a restart marker in its turn, or a scan's or the file's end.
void on_trace(j_common_ptr codec) {
  auto* session = static_cast<Session*>(codec->client_data);
  const int code = codec->err->msg_code;
  if (code == JTRC_RST) session->damage_open = false;
  if (session->damage_open && (code == JTRC_SOS || code == JTRC_EOI)) fail(codec);
}

// Level -1 is a warning: the data is damaged and the library would go on with invented pixels. We
// do not, with two exceptions that its users expect to load: bytes that it could skip between
// segments, and damage that ends at the next restart marker. Data that ends early with the file or
// the scan, and markers out of turn, stay errors.
void on_message(j_common_ptr codec, int level) {
  if (level >= 0) return on_trace(codec);
  const int code = codec->err->msg_code;
  auto* session = static_cast<Session*>(codec->client_data);
  if (code == JWRN_EXTRANEOUS_DATA) {
    const int bytes = codec->err->msg_parm.i[0];
    if (is_restart(codec->err->msg_parm.i[1])) {
      open_damage(codec, session->left_over, bytes);
    } else {
      session->stray_bytes += bytes;
    }
  } else if (code == JWRN_HIT_MARKER && is_restart(session->codec.unread_marker)) {
    open_damage(codec, session->early_ends, 1);
  } else if (code == JWRN_HUFF_BAD_CODE && session->codec.restart_interval > 0) {
    open_damage(codec, session->bad_codes, 1);
  } else if (code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR) {
    session->odd_header = true;
  } else {
    fail(codec);
  }
}

void ignore_output(j_common_ptr) {}

void count_scans(j_common_ptr codec) {
  auto* session = static_cast<Session*>(codec->client_data);
  if (!codec->is_decompressor || session->codec.input_scan_number <= session->max_scans) return;
  session->scans_exceeded = true;
  std::snprintf(session->message, sizeof(session->message), "more than %d scans",
                session->max_scans);
  std::longjmp(session->jump, 1);
}

bool start(Session& s, std::span<const std::byte> file) {
  s.codec.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = fail;
  s.errors.emit_message = on_message;
  s.errors.output_message = ignore_output;
  s.codec.client_data = &s;
  if (setjmp(s.jump) != 0) return false;
  jpeg_create_decompress(&s.codec);
  s.progress.progress_monitor = count_scans;
  s.codec.progress = &s.progress;
  jpeg_mem_src(&s.codec, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&s.codec, TRUE);
  const bool inks = s.codec.jpeg_color_space == JCS_CMYK || s.codec.jpeg_color_space == JCS_YCCK;
  s.codec.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  s.codec.dct_method = JDCT_ISLOW;
  s.codec.do_fancy_upsampling = TRUE;
  return true;
}

bool start_rows(Session& s) {
  if (setjmp(s.jump) != 0) return false;
  return jpeg_start_decompress(&s.codec) != FALSE;
}

bool read_rows(Session& s, uint8_t* out, size_t row_bytes, int32_t count) {
  constexpr int32_t kMaxRows = 16;
  if (setjmp(s.jump) != 0) return false;
  for (int32_t done = 0; done < count;) {
    JSAMPROW rows[kMaxRows];
    const int32_t want = std::min(kMaxRows, count - done);
    for (int32_t i = 0; i < want; ++i) rows[i] = out + row_bytes * (done + i);
    done += static_cast<int32_t>(jpeg_read_scanlines(&s.codec, rows, want));
  }
  return true;
}

bool finish_rows(Session& s) {
  if (setjmp(s.jump) != 0) return false;
  return jpeg_finish_decompress(&s.codec) != FALSE;
}

std::string_view kind_of(const Session& s) {
  switch (s.error_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
      return "truncated";
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
      return "unsupported_format";
    case JERR_OUT_OF_MEMORY:
      return "too_large";
    default:
      return "corrupt";
  }
}

// round(a * b / 255)
uint8_t scaled(uint32_t a, uint32_t b) {
  const uint32_t v = a * b + 128;
  return static_cast<uint8_t>((v + (v >> 8)) >> 8);
}

// Inks to light: nk - round((255 - c) * nk / 255), where Adobe files store c and k inverted (nk = k
// as stored).
void inks_to_rgb(const uint8_t* inks, uint8_t* rgb, int32_t pixels, bool inverted) {
  const uint8_t flip = inverted ? 0 : 255;
  for (int32_t i = 0; i < pixels; ++i, inks += 4, rgb += 3) {
    const uint8_t nk = inks[3] ^ flip;
    for (int c = 0; c < 3; ++c)
      rgb[c] = static_cast<uint8_t>(nk - scaled(255 - (inks[c] ^ flip), nk));
  }
}

class JpegReader final : public RowReader {
 public:
  JpegReader(const Header& header, int max_scans) : header_(header) {
    session_.max_scans = max_scans;
  }
  ~JpegReader() override { jpeg_destroy_decompress(&session_.codec); }

  std::optional<Failure> open(std::span<const std::byte> file) {
    if (!start(session_, file)) return failure();
    const auto& codec = session_.codec;
    if (static_cast<int32_t>(codec.image_width) != header_.stored.width ||
        static_cast<int32_t>(codec.image_height) != header_.stored.height) {
      return Failure{"corrupt", "JPEG: two frame headers that differ"};
    }
    if (codec.out_color_space == JCS_RGB && codec.num_components != 1 &&
        codec.num_components != 3) {
      return Failure{"unsupported_format",
                     fmt::format("JPEG: {} components; 1, 3 or 4 are read", codec.num_components)};
    }
    if (!start_rows(session_)) return failure();
    if (codec.output_components == 4) inks_.resize(size_t{4} * header_.stored.width);
    return std::nullopt;
  }

  std::optional<Failure> read(uint8_t* out, int32_t count) override {
    const int32_t width = header_.stored.width;
    if (inks_.empty()) {
      if (!read_rows(session_, out, size_t{3} * width, count)) return failure();
      return std::nullopt;
    }
    for (int32_t i = 0; i < count; ++i, out += size_t{3} * width) {
      if (!read_rows(session_, inks_.data(), inks_.size(), 1)) return failure();
      inks_to_rgb(inks_.data(), out, width, header_.adobe);
    }
    return std::nullopt;
  }

  std::optional<Failure> finish(Decoded& out) override {
    if (!finish_rows(session_)) return failure();
    add_damage(out.damage);
    if (session_.odd_header) out.notes.push_back("jpeg: a header of another version");
    const size_t left = session_.codec.src->bytes_in_buffer;
    if (left > 0) out.notes.push_back(fmt::format("trailing bytes: {}", left));
    return std::nullopt;
  }

 private:
  void add_damage(std::vector<Failure>& damage) const {
    const Session& s = session_;
    if (s.stray_bytes > 0) {
      damage.push_back(
          {"stray_bytes", fmt::format("JPEG: {} stray bytes between segments", s.stray_bytes)});
    }
    if (s.left_over + s.bad_codes + s.early_ends == 0) return;
    damage.push_back({"damaged_part",
                      fmt::format("JPEG: parts of the picture are wrong: restart intervals with {} "
                                  "bytes left over, {} bad codes, {} early ends",
                                  s.left_over, s.bad_codes, s.early_ends)});
  }

  Failure failure() const {
    const std::string_view kind = session_.scans_exceeded ? "too_large" : kind_of(session_);
    return {std::string(kind), fmt::format("JPEG: {}", session_.message)};
  }

  Header header_;
  Session session_;
  std::vector<uint8_t> inks_;
};

}  // namespace

OpenedReader open_jpeg(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options) {
  auto reader = std::make_unique<JpegReader>(header, options.limits.max_jpeg_scans);
  if (auto failure = reader->open(file)) return *failure;
  return std::unique_ptr<RowReader>(std::move(reader));
}

}  // namespace mm::image
