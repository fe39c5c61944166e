#include "lib/data/picture_packer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/image/encode.h"
#include "lib/image/prepare.h"
#include "lib/image/tiling.h"

namespace mm::data {
namespace {

constexpr int32_t kMaxStoredSide = 65535;
constexpr int32_t kMaxWebpSide = 16383;
constexpr int32_t kMaxTiles = 255;

}  // namespace

PictureGrid grid_from(const image::PictureShape& shape) {
  return {.width = shape.tile.width,
          .height = shape.tile.height,
          .tiles = shape.tiles,
          .rows = shape.rows,
          .columns = shape.columns,
          .tokens = shape.tokens,
          .original_width = shape.original.width,
          .original_height = shape.original.height};
}

PicturePacker::PicturePacker(const PictureOptions& options)
    : options_(options),
      preparation_(preparation_of(options)),
      decoding_(decode_options_of(options)),
      varied_(!image::is_uniform(preparation_.geometry)) {}

image::DecodeOptions PicturePacker::decoding(int orientation) const {
  image::DecodeOptions options = decoding_;
  options.untagged = orientation;
  return options;
}

Result<PictureGrid> PicturePacker::grid_of(const std::string& file, int orientation) const {
  const auto header = image::probe_for(image::as_bytes(file), decoding(orientation));
  if (!header) return header.failure();
  const bool apply = decoding_.orient == image::Orient::kApply;
  const image::PictureShape shape =
      image::shape_of(apply ? header->upright : header->stored, preparation_);
  const int32_t most = options_.storage.starts_with("webp") ? kMaxWebpSide : kMaxStoredSide;
  if (std::max(shape.tile.width, shape.tile.height) > most || shape.tiles > kMaxTiles) {
    return Failure{"too_large",
                   fmt::format("becomes {} tiles of {} x {}; a record holds {} of {}", shape.tiles,
                               shape.tile.width, shape.tile.height, kMaxTiles, most)};
  }
  return grid_from(shape);
}

// A file whose pixels, read as the loader will read them, are the prepared ones.
std::optional<PictureCodec> PicturePacker::as_it_is(const std::string& file,
                                                    const image::Header& header,
                                                    const image::Image& prepared) const {
  const bool source = options_.storage == "source";
  const bool jpeg = header.format == image::Format::kJpeg && (source || options_.storage == "jpeg");
  const bool webp = header.format == image::Format::kWebp && source;
  const bool resized =
      header.stored.width != prepared.width || header.stored.height != prepared.height;
  if ((!jpeg && !webp) || resized || file.size() >= prepared.rgb.size()) return std::nullopt;
  const auto plain = image::decode(image::as_bytes(file), {.orient = image::Orient::kIgnore});
  if (!plain || !(plain->image == prepared)) return std::nullopt;
  return jpeg ? PictureCodec::kJpeg : PictureCodec::kWebp;
}

PictureCodec PicturePacker::encode(const image::Image& tiles, int32_t count,
                                   std::string& bytes) const {
  if (options_.storage == "raw" || options_.storage == "source") {
    bytes.assign(tiles.rgb.begin(), tiles.rgb.end());
    return PictureCodec::kRaw;
  }
  const bool jpeg = options_.storage == "jpeg";
  const image::WebpOptions webp{.quality = static_cast<float>(options_.webp_quality),
                                .lossless = options_.storage == "webp-lossless"};
  const auto file_of = [&](const image::Image& tile) {
    return jpeg ? image::encode_jpeg(
                      tile, {.quality = options_.jpeg_quality, .optimise = options_.jpeg_optimize})
                : image::encode_webp(tile, webp);
  };
  std::vector<std::string> files;
  const int32_t height = tiles.height / count;
  if (count == 1) files.push_back(file_of(tiles));
  for (int32_t i = 0; i < count && count > 1; ++i)
    files.push_back(file_of(image::crop(tiles, {0, height * i, tiles.width, height})));
  bytes = join_tiles(files);
  return jpeg ? PictureCodec::kJpeg : PictureCodec::kWebp;
}

Result<PackedPicture> PicturePacker::pack(const std::string& file, int orientation) const {
  PackedPicture picture;
  if (varied_) {
    auto grid = grid_of(file, orientation);
    if (!grid) return grid.failure();
    picture.grid = *grid;
  }
  auto decoded = image::decode_prepared(image::as_bytes(file), preparation_, decoding(orientation));
  if (!decoded) return decoded.failure();
  picture.damage = std::move(decoded->damage);
  const image::Image& image = decoded->image;
  const int32_t tiles = picture.grid ? picture.grid->tiles : 1;
  picture.width = static_cast<uint16_t>(image.width);
  picture.height = static_cast<uint16_t>(image.height / tiles);
  const auto kept = tiles == 1 ? as_it_is(file, decoded->header, image) : std::nullopt;
  if (kept) {
    picture.codec = *kept;
    picture.bytes = file;
  } else {
    picture.codec = encode(image, tiles, picture.bytes);
  }
  return picture;
}

}  // namespace mm::data
