// GIF by giflib, which undoes LZW; the first frame is placed and coloured here.
#include <fmt/format.h>
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "lib/image/composite.h"
#include "lib/image/row_reader.h"

namespace mm::image {
namespace {

struct Input {
  std::span<const std::byte> file;
  size_t at = 0;
};

int read_bytes(GifFileType* gif, GifByteType* out, int count) {
  auto* input = static_cast<Input*>(gif->UserData);
  const size_t now = std::min<size_t>(static_cast<size_t>(count), input->file.size() - input->at);
  std::memcpy(out, input->file.data() + input->at, now);
  input->at += now;
  return static_cast<int>(now);
}

struct GifDeleter {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

Failure failure_of(int code) {
  const char* text = GifErrorString(code);
  const bool ended = code == D_GIF_ERR_READ_FAILED || code == D_GIF_ERR_EOF_TOO_SOON;
  return {ended ? "truncated" : "corrupt", fmt::format("GIF: {}", text ? text : "damaged")};
}

class GifReader final : public RowReader {
 public:
  GifReader(std::span<const std::byte> file, const Header& header, const Alpha& alpha)
      : input_{file}, canvas_(header.stored), alpha_(alpha) {}

  std::optional<Failure> open() {
    int code = 0;
    gif_.reset(DGifOpen(&input_, read_bytes, &code));
    if (!gif_) return failure_of(code);
    if (auto failure = find_frame()) return failure;
    const GifImageDesc& frame = gif_->Image;
    place_ = {frame.Left, frame.Top, frame.Width, frame.Height};
    const bool inside = place_.left >= 0 && place_.top >= 0 && place_.width > 0 &&
                        place_.height > 0 && place_.width <= canvas_.width - place_.left &&
                        place_.height <= canvas_.height - place_.top;
    if (!inside) return Failure{"corrupt", "GIF: the first frame leaves its canvas"};
    make_colours(frame.ColorMap != nullptr ? frame.ColorMap : gif_->SColorMap);
    if (frame.Interlace) return read_interlaced();
    return std::nullopt;
  }

  std::optional<Failure> read(uint8_t* out, int32_t count) override {
    std::vector<uint8_t> row(size_t{4} * canvas_.width), indices(place_.width);
    for (int32_t i = 0; i < count; ++i, ++next_row_, out += size_t{3} * canvas_.width) {
      for (int32_t x = 0; x < canvas_.width; ++x) put(empty_, row.data() + size_t{4} * x);
      const int32_t y = next_row_ - place_.top;
      if (y >= 0 && y < place_.height) {
        if (auto failure = next_indices(y, indices)) return failure;
        for (int32_t x = 0; x < place_.width; ++x)
          put(indices[x], row.data() + size_t{4} * (place_.left + x));
      }
      composite_row(row.data(), out, canvas_.width, alpha_);
    }
    return std::nullopt;
  }

  // What follows the first frame is not this picture; it is only counted.
  std::optional<Failure> finish(Decoded& out) override {
    const auto& file = input_.file;
    if (input_.at < file.size() && std::to_integer<int>(file[input_.at]) != 0x3B)
      out.notes.emplace_back("first picture of several");
    if (input_.at == file.size()) out.notes.emplace_back("gif: no end mark");
    return std::nullopt;
  }

 private:
  // Up to the first frame; its graphic control may name a transparent colour.
  std::optional<Failure> find_frame() {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    while (record != IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetRecordType(gif_.get(), &record) == GIF_ERROR) return failure_of(gif_->Error);
      if (record == TERMINATE_RECORD_TYPE) return Failure{"corrupt", "GIF has no frame"};
      if (record != EXTENSION_RECORD_TYPE) continue;
      int kind = 0;
      GifByteType* block = nullptr;
      if (DGifGetExtension(gif_.get(), &kind, &block) == GIF_ERROR) return failure_of(gif_->Error);
      while (block != nullptr) {
        GraphicsControlBlock control{};
        if (kind == GRAPHICS_EXT_FUNC_CODE &&
            DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
          transparent_ = control.TransparentColor;
        if (DGifGetExtensionNext(gif_.get(), &block) == GIF_ERROR) return failure_of(gif_->Error);
      }
    }
    if (DGifGetImageDesc(gif_.get()) == GIF_ERROR) return failure_of(gif_->Error);
    return std::nullopt;
  }

  // Without any table the indices are gray levels; past a table's end they are black.
  void make_colours(const ColorMapObject* map) {
    for (size_t i = 0; i < colours_.size(); ++i) {
      const auto gray = static_cast<uint8_t>(map == nullptr ? i : 0);
      colours_[i] = {gray, gray, gray, 255};
      if (map != nullptr && static_cast<int>(i) < map->ColorCount) {
        const GifColorType& c = map->Colors[i];
        colours_[i] = {c.Red, c.Green, c.Blue, 255};
      }
    }
    if (transparent_ < 0 || transparent_ > 255) return;
    colours_[transparent_][3] = 0;
    empty_ = static_cast<uint8_t>(transparent_);
  }

  void put(uint8_t index, uint8_t* rgba) const { std::copy_n(colours_[index].data(), 4, rgba); }

  std::optional<Failure> next_line(uint8_t* indices) {
    if (DGifGetLine(gif_.get(), indices, place_.width) == GIF_ERROR) return failure_of(gif_->Error);
    return std::nullopt;
  }

  std::optional<Failure> next_indices(int32_t y, std::vector<uint8_t>& indices) {
    if (whole_.empty()) return next_line(indices.data());
    std::copy_n(whole_.begin() + ptrdiff_t{place_.width} * y, place_.width, indices.begin());
    return std::nullopt;
  }

  // Every eighth row from 0 and from 4, every fourth from 2, every second from 1. The buffer grows
  // with the rows that come.
  std::optional<Failure> read_interlaced() {
    std::vector<uint8_t> lines;
    for (int32_t i = 0; i < place_.height; ++i) {
      lines.resize(lines.size() + place_.width);
      if (auto failure = next_line(lines.data() + ptrdiff_t{place_.width} * i)) return failure;
    }
    whole_.resize(lines.size());
    const uint8_t* line = lines.data();
    for (const auto& [from, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}}) {
      for (int32_t y = from; y < place_.height; y += step, line += place_.width)
        std::copy_n(line, place_.width, whole_.begin() + ptrdiff_t{place_.width} * y);
    }
    return std::nullopt;
  }

  Input input_;
  Size canvas_;
  Alpha alpha_;
  std::unique_ptr<GifFileType, GifDeleter> gif_;
  Box place_;
  int transparent_ = NO_TRANSPARENT_COLOR;
  std::array<std::array<uint8_t, 4>, 256> colours_{};
  uint8_t empty_ = 0;
  std::vector<uint8_t> whole_;  // [place.height, place.width] of an interlaced frame
  int32_t next_row_ = 0;
};

}  // namespace

OpenedReader open_gif(std::span<const std::byte> file, const Header& header,
                      const DecodeOptions& options) {
  auto reader = std::make_unique<GifReader>(file, header, options.alpha);
  if (auto failure = reader->open()) return *failure;
  return std::unique_ptr<RowReader>(std::move(reader));
}

}  // namespace mm::image
