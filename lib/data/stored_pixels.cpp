#include "lib/data/stored_pixels.h"

#include <cstring>

#include "lib/base/error.h"
#include "lib/base/stream_copy.h"
#include "lib/image/decode_into.h"

namespace mm::data {
namespace {

constexpr size_t kTrustedBytes = size_t{128} << 20;

/// `count` bytes more at the end, not yet written.
std::span<uint8_t> grow(PixelVector& pixels, size_t count) {
  const size_t before = pixels.size();
  pixels.resize(before + count);
  return std::span(pixels).subspan(before);
}

/// One stored file; its pixels are as they are trained on, whatever its tags say.
void append_file(std::string_view file, const StoredPicture& picture, PixelVector& pixels) {
  const image::DecodeOptions options{.orient = image::Orient::kIgnore};
  const auto content = image::as_bytes(file);
  const auto fail = [](const Failure& failure) {
    throw DataError("stored picture: {}", failure.message);
  };
  const auto header = image::probe(content, options.limits);
  if (!header) fail(header.failure());
  if (header->stored.width != picture.width || header->stored.height != picture.height) {
    throw DataError("stored picture is {}x{}, its record says {}x{}", header->stored.width,
                    header->stored.height, picture.width, picture.height);
  }
  const size_t bytes = size_t{3} * picture.width * picture.height;
  if (bytes <= kTrustedBytes) {
    if (const auto failure = image::decode_into(content, *header, grow(pixels, bytes), options))
      fail(*failure);
    return;
  }
  const auto decoded = image::decode(content, options);
  if (!decoded) fail(decoded.failure());
  MM_CHECK(decoded->image.rgb.size() == bytes, "{} bytes decoded", decoded->image.rgb.size());
  std::memcpy(grow(pixels, bytes).data(), decoded->image.rgb.data(), bytes);
}

}  // namespace

void append_pixels(const StoredPicture& picture, const PictureLayout& layout, PixelVector& pixels,
                   RecordSum* sum) {
  if (picture.grid.has_value() != layout.varied) {
    throw DataError("picture {} a grid in a set of {} pictures", picture.grid ? "with" : "without",
                    layout.varied ? "varied" : "equal");
  }
  if (!layout.varied && (picture.width != layout.width || picture.height != layout.height)) {
    throw DataError("picture of {}x{}, the data set has {}x{}", picture.width, picture.height,
                    layout.width, layout.height);
  }
  if (picture.codec == PictureCodec::kLatent) {
    throw DataError("picture stored as a latent tensor; this version trains on pixels");
  }
  if (picture.codec == PictureCodec::kRaw) {
    uint8_t* const to = grow(pixels, picture.bytes.size()).data();
    if (sum != nullptr) return sum->copy(picture.bytes, to);
    return stream_copy(std::as_bytes(std::span(picture.bytes)), reinterpret_cast<std::byte*>(to));
  }
  for (const std::string_view file : split_tiles(picture.bytes, picture.tiles()))
    append_file(file, picture, pixels);
}

}  // namespace mm::data
