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
  int32_t side = 336;             ///< pixels of the stored square
  int32_t patch = 14;             ///< pixels; a picture takes (side / patch)^2 tokens
  std::string geometry = "crop";  ///< crop, pad, squash (lib/image)
  std::string filter = "bicubic";
  std::string storage = "raw";  ///< raw: exact pixels; jpeg: smaller, decoded at load time
  int32_t jpeg_quality = 95;
  image::Limits limits;
};

/// Everything that decides the bytes of a data set. Threads, the bad-sample limit and the output's
/// name do not.
struct PackOptions {
  SourceOptions source;
  std::filesystem::path tokenizer;      ///< SentencePiece model or tokenizer.json
  std::string chat_template = "plain";  ///< lib/text
  PictureOptions pictures;
  bool text_only = false;     ///< drop pictures and their marks: texts of an image-text source
  int32_t max_length = 2048;  ///< tokens of a sample, pictures included
  uint64_t shard_bytes = uint64_t{256} << 20;
  std::filesystem::path ids;      ///< file of keys, one a line: only these records; empty: all
  std::filesystem::path exclude;  ///< file of keys: not these records
};

/// Throws UsageError naming the option that is impossible and what it may be.
void check(const PackOptions& options);

/// Tokens of a picture: (side / patch)^2, 0 in a set of texts.
int32_t picture_tokens(const PackOptions& options);

/// The options as the manifest records them; files by size and hash. Equal objects give equal data
/// sets. Throws IoError.
Json canonical_options(const PackOptions& options);

/// First key, in dots, whose values differ, as "max_length: 512 there, 256 now"; nothing if equal.
std::optional<std::string> first_difference(const Json& there, const Json& now);

}  // namespace mm::data
