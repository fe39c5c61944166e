#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/base/json.h"
#include "lib/data/source.h"
#include "lib/image/decode.h"
#include "lib/image/geometry.h"
#include "lib/image/resize.h"

namespace mm::data {

/// What becomes of pictures. `side` 0: a set of texts, see `text_only`.
struct PictureOptions {
  int32_t side = 336;             ///< pixels of a stored square
  int32_t patch = 14;             ///< pixels; a picture takes (side / patch / merge)^2 tokens
  int32_t merge = 1;              ///< patches along a side that make one token
  std::string geometry = "crop";  ///< a word of lib/image/geometry.h
  std::string filter = "bicubic";
  std::string pass_order = "pillow12";  ///< a word of lib/image/resize.h
  /// raw: exact pixels. jpeg, webp: smaller, decoded at load time. webp-lossless: exact. source:
  /// the file as it is where its pixels need no change, else raw; jpeg does the same with JPEG
  /// files.
  std::string storage = "raw";
  int32_t jpeg_quality = 95;
  bool jpeg_optimize = false;  ///< Huffman tables made for each picture: smaller, slower to pack
  int32_t webp_quality = 90;
  std::string alpha = "white";   ///< behind transparent pixels: white, black, drop, #rrggbb
  std::string orient = "apply";  ///< the orientation tag: apply, ignore
  std::string grids = "1x2,2x1,2x2,3x1,1x3";  ///< anyres: rows x columns of tiles
  int32_t max_grid_tiles = 0;  ///< anyres: features of more tiles are scaled down; 0: never
  std::string buckets;         ///< bucket: width x height in pixels; buckets: also names of presets
  std::string bucket_area;     ///< buckets: derived for these areas
  int32_t bucket_multiple = 64;                               ///< of derived sides, pixels
  double bucket_ratio = 2;                                    ///< of derived sides at most
  int32_t min_tiles = 1, max_tiles = 12;                      ///< internvl
  bool thumbnail = true;                                      ///< internvl
  int64_t min_pixels = 56 * 56, max_pixels = 1280 * 28 * 28;  ///< qwen: of the prepared picture
  image::Limits limits;                                       ///< of the source's header
};

/// The options of a packed set, from "pictures" of what its manifest records (canonical_options).
/// Keys that are not there have their defaults; what cannot be read throws DataError with `origin`.
PictureOptions picture_options_from(const Json& recorded, const std::string& origin);

/// How lib/image prepares and decodes by these options. Throws UsageError naming the option that is
/// impossible.
image::Preparation preparation_of(const PictureOptions& pictures);
image::DecodeOptions decode_options_of(const PictureOptions& pictures);

/// Everything that decides the bytes of a data set. Threads, the bad-sample limit and the output's
/// name do not.
struct PackOptions {
  SourceOptions source;
  std::filesystem::path tokenizer;      ///< any kind that lib/text/tokenizer.h knows
  std::string tokenizer_scheme;         ///< tiktoken: see text::TokenizerOptions::scheme
  std::string chat_template = "plain";  ///< name, or definition in TOML (lib/text)
  PictureOptions pictures;
  /// With source.labels (in place of a tokenizer):
  std::filesystem::path class_names;  ///< file of names, one a line, in the order of the ids;
                                      ///< empty: those that the source has, numbers as themselves
  bool text_only = false;     ///< drop pictures and their marks: texts of an image-text source
  int32_t max_length = 2048;  ///< tokens of a sample, pictures included; of a caption in a
                              ///< bucketed set, which has no template
  uint64_t shard_bytes = uint64_t{256} << 20;
  std::filesystem::path ids;       ///< file of keys, one a line: only these records; empty: all
  std::filesystem::path exclude;   ///< file of keys: not these records
  std::filesystem::path for_plan;  ///< plan file whose order the shards take; empty: by length
};

/// Throws UsageError naming the option that is impossible and what it may be.
void check(const PackOptions& options);

/// Pictures of several tiles or sizes, each with its own grid and token count?
bool has_varied_pictures(const PackOptions& options);
/// Pictures of one shape a batch (geometry "buckets")?
bool is_bucketed(const PackOptions& options);
/// Tokens of a picture: (side / patch / merge)^2, 0 in a set of texts; of the smallest picture
/// where they vary.
int32_t picture_tokens(const PackOptions& options);

/// The options as the manifest records them; files by size and hash. Equal objects give equal data
/// sets. Throws IoError.
Json canonical_options(const PackOptions& options);

/// First key, in dots, whose values differ, as "max_length: 512 there, 256 now"; nothing if equal.
/// Places of sources are compared in absolute form.
std::optional<std::string> first_difference(const Json& there, const Json& now);

}  // namespace mm::data
