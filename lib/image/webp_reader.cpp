// WebP by libwebp; the first frame of an animation by its demuxer, on a transparent canvas.
#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>

#include "lib/image/composite.h"
#include "lib/image/row_reader.h"

namespace mm::image {
namespace {

struct DemuxerDeleter {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DemuxerDeleter>;

constexpr size_t kRiffHeadBytes = 8;

// Bytes of the file by its own head.
size_t riff_bytes(std::span<const std::byte> file) {
  uint32_t size_bytes = 0;
  for (int i = 3; i >= 0; --i)
    size_bytes = size_bytes << 8 | std::to_integer<uint32_t>(file[4 + i]);
  return kRiffHeadBytes + size_bytes;
}

Failure failure_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return {"truncated", "WebP: the pixel data ends too early"};
    case VP8_STATUS_OUT_OF_MEMORY:
      return {"too_large", "WebP: libwebp is out of memory"};
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return {"unsupported_format", "WebP: a feature that libwebp does not read"};
    default:
      return {"corrupt", fmt::format("WebP: damaged pixel data (status {})", int{status})};
  }
}

class WebpReader final : public RowReader {
 public:
  WebpReader(std::span<const std::byte> file, const Header& header, const Alpha& alpha)
      : file_(file), canvas_(header.stored), alpha_(alpha) {}
  ~WebpReader() override { WebPDemuxReleaseIterator(&frame_); }

  std::optional<Failure> open() {
    if (riff_bytes(file_) > file_.size()) {
      return Failure{"truncated", fmt::format("WebP says {} bytes, the file has {}",
                                              riff_bytes(file_), file_.size())};
    }
    const WebPData data{reinterpret_cast<const uint8_t*>(file_.data()), file_.size()};
    demuxer_.reset(WebPDemux(&data));
    if (!demuxer_ || WebPDemuxGetFrame(demuxer_.get(), 1, &frame_) == 0 || frame_.complete == 0)
      return Failure{"corrupt", "WebP: the file's chunks do not hold a picture"};
    place_ = {frame_.x_offset, frame_.y_offset, frame_.width, frame_.height};
    const bool inside = place_.left >= 0 && place_.top >= 0 && place_.width > 0 &&
                        place_.height > 0 && place_.width <= canvas_.width - place_.left &&
                        place_.height <= canvas_.height - place_.top;
    if (!inside) return Failure{"corrupt", "WebP: the first frame leaves its canvas"};
    return decode_frame();
  }

  std::optional<Failure> read(uint8_t* out, int32_t count) override {
    std::vector<uint8_t> row(size_t{4} * canvas_.width);
    for (int32_t i = 0; i < count; ++i, ++next_row_, out += size_t{3} * canvas_.width) {
      std::fill(row.begin(), row.end(), uint8_t{0});
      const int32_t y = next_row_ - place_.top;
      if (y >= 0 && y < place_.height) {
        const size_t bytes = size_t{4} * place_.width;
        std::copy_n(rgba_.get() + bytes * y, bytes, row.data() + size_t{4} * place_.left);
      }
      composite_row(row.data(), out, canvas_.width, alpha_);
    }
    return std::nullopt;
  }

  std::optional<Failure> finish(Decoded& out) override {
    const size_t left = file_.size() - riff_bytes(file_);
    if (left > 0) out.notes.push_back(fmt::format("trailing bytes: {}", left));
    return std::nullopt;
  }

 private:
  // The buffer is not cleared, so that a header alone makes no memory resident.
  std::optional<Failure> decode_frame() {
    const size_t stride = size_t{4} * place_.width, bytes = stride * place_.height;
    rgba_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
      return Failure{"corrupt", "WebP: libwebp of another version"};
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {rgba_.get(), static_cast<int>(stride), bytes};
    const VP8StatusCode status = WebPDecode(frame_.fragment.bytes, frame_.fragment.size, &config);
    if (status != VP8_STATUS_OK) return failure_of(status);
    return std::nullopt;
  }

  std::span<const std::byte> file_;
  Size canvas_;
  Alpha alpha_;
  Demuxer demuxer_;
  WebPIterator frame_{};
  Box place_;
  std::unique_ptr<uint8_t[]> rgba_;  // [place.height, place.width, 4]
  int32_t next_row_ = 0;
};

}  // namespace

OpenedReader open_webp(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options) {
  auto reader = std::make_unique<WebpReader>(file, header, options.alpha);
  if (auto failure = reader->open()) return *failure;
  return std::unique_ptr<RowReader>(std::move(reader));
}

}  // namespace mm::image
