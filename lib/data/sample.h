#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/epoch_plan.h"
#include "lib/data/picture_grid.h"

struct ZSTD_DCtx_s;

namespace mm::data {

/// Label of a position that gets no loss.
inline constexpr int32_t kIgnore = -100;

/// Tokens [begin, end) of a sample.
struct TokenSpan {
  uint32_t begin = 0, end = 0;
  bool operator==(const TokenSpan&) const = default;
};

/// The token side of a sample. Pictures are already expanded: picture i stands at
/// tokens[image_begin[i]], as many placeholders as the data set has patches a picture.
struct SampleText {
  std::vector<int32_t> tokens;
  std::vector<TokenSpan> trainable;   ///< ascending, not empty, apart; their tokens are the labels
  std::vector<uint32_t> image_begin;  ///< ascending
  bool operator==(const SampleText&) const = default;
};

enum class PictureCodec : uint8_t { kRaw = 0, kJpeg = 1, kWebp = 2, kLatent = 3 };

/// A stored picture: raw is [tiles, height, width, 3] u8, JPEG and WebP one file a tile, latent a
/// tensor of an encoder that this version does not read. `bytes` is borrowed when read.
struct StoredPicture {
  PictureCodec codec = PictureCodec::kRaw;
  uint16_t width = 0, height = 0;   ///< of a tile
  std::string_view bytes;           ///< of several files: each behind its length, u32
  std::optional<PictureGrid> grid;  ///< in sets of varied pictures

  int32_t tiles() const { return grid ? grid->tiles : 1; }
};

/// One file a tile as `bytes` of a StoredPicture; a single one stands alone.
std::string join_tiles(std::span<const std::string> files);
/// The reverse. Throws DataError if lengths and bytes disagree.
std::vector<std::string_view> split_tiles(std::string_view bytes, int32_t tiles);

/// A sample as bytes (docs/formats.md): token block, zstd where that is smaller, then the pictures.
std::string encode_sample(const SampleText& text, std::span<const StoredPicture> pictures);

/// What decode_sample returns; `pictures` point into the bytes it was given.
struct DecodedSample {
  SampleText text;
  std::vector<StoredPicture> pictures;
};

/// Working memory for unpacking token blocks; to make it anew costs 10 us, fifteen times what a
/// block does. One thread at a time.
class TextUnpacker {
 public:
  TextUnpacker();
  /// Throws DataError unless `stored` unpacks to `raw_bytes`.
  std::string unpack(std::span<const std::byte> stored, size_t raw_bytes);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

/// Reads hostile bytes. `tokens` is the count that the index states: more or fewer is an error, and
/// nothing larger than what it allows is allocated. Throws DataError saying what is wrong.
DecodedSample decode_sample(std::span<const std::byte> bytes, uint32_t tokens,
                            TextUnpacker& unpacker);
DecodedSample decode_sample(std::span<const std::byte> bytes, uint32_t tokens);

/// A sample ready for collation. H, W are the data set's picture sides; in a set of varied pictures
/// each has its own.
struct Sample {
  SampleText text;
  std::vector<uint8_t> pixels;  ///< [images, H, W, 3], or the tiles of all pictures one by one
  std::vector<PictureGrid> grids = {};  ///< of each picture in a set of varied ones, else empty
};

/// Unshifted labels [T]: the token where trainable, else kIgnore.
std::vector<int32_t> labels_of(const SampleText& text);

/// Row of the index for this sample. Targets are counted after the shift inside the sample: the
/// first token has no predecessor, so it is no target even if trainable. Images are pictures, or
/// the tiles of all pictures where there are `grids`.
SampleSize size_of(const SampleText& text, std::span<const PictureGrid> grids = {});

}  // namespace mm::data
