#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/data/pack_options.h"
#include "lib/data/picture_grid.h"
#include "lib/data/sample.h"
#include "lib/image/tiling.h"

namespace mm::data {

/// The shape of a prepared picture as a sample keeps it.
PictureGrid grid_from(const image::PictureShape& shape);

/// A picture as it will stand in a shard.
struct PackedPicture {
  PictureCodec codec = PictureCodec::kRaw;
  uint16_t width = 0, height = 0;
  std::string bytes;
  std::optional<PictureGrid> grid;
  std::vector<Failure> damage = {};  ///< as image::Decoded

  StoredPicture stored() const { return {codec, width, height, bytes, grid}; }
};

/// Picture files to what shards hold: decoded, prepared, stored by the options. Thread-safe.
class PicturePacker {
 public:
  /// Throws UsageError naming the option that is impossible.
  explicit PicturePacker(const PictureOptions& options);

  /// Pictures of several tiles or sizes?
  bool varied() const { return varied_; }
  /// Tiles and tokens from the file's header alone, for a varied set. Failure kinds of
  /// image::probe, and "too_large" for more tiles or pixels than a record can hold.
  /// `orientation`: of a file that carries none.
  Result<PictureGrid> grid_of(const std::string& file, int orientation = 1) const;
  /// Failure kinds of image::decode.
  Result<PackedPicture> pack(const std::string& file, int orientation = 1) const;

 private:
  image::DecodeOptions decoding(int orientation) const;
  PictureCodec encode(const image::Image& tiles, int32_t count, std::string& bytes) const;
  std::optional<PictureCodec> as_it_is(const std::string& file, const image::Header& header,
                                       const image::Image& prepared) const;

  const PictureOptions options_;
  const image::Preparation preparation_;
  const image::DecodeOptions decoding_;
  const bool varied_;
};

}  // namespace mm::data
