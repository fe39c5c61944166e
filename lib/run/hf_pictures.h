#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::run {

/// How a published model wants its pictures.
struct HfPictures {
  /// Words of lib/image: "crop", "pad", "squash" for one square a picture, "anyres", "qwen".
  std::string geometry;
  std::string filter;  ///< a word of lib/image
  int64_t side = 0;    ///< pixels of a square or tile; of "qwen" 0
  std::vector<double> mean{0.48145466, 0.4578275, 0.40821073};  ///< CLIP's, in units of [0, 1]
  std::vector<double> std{0.26862954, 0.26130258, 0.27577711};
  /// anyres: [height, width] in pixels; empty: as config.json has them.
  std::vector<std::vector<int64_t>> grid_points;
  int64_t patch = 14, merge = 2;                              ///< qwen
  int64_t min_pixels = 56 * 56, max_pixels = 1280 * 28 * 28;  ///< qwen: of the prepared picture
  bool operator==(const HfPictures&) const = default;
};

/// Classes of pictures that transformers has a processor for.
enum class HfProcessor { kClip, kSiglip, kLlavaNext, kLlavaOnevision, kQwen2Vl };

/// From preprocessor_config.json, or the "image_processor" of processor_config.json (transformers
/// 5), in both spellings of sizes: a number or {"height", "width"}, {"shortest_edge"}. Shortest
/// edge and centre crop of the same side is "crop"; "do_pad" is "pad"; a fixed height and width
/// without a crop is "squash". A file with "image_grid_pinpoints" is "anyres", whose side is
/// "size"'s (a crop must have it too); one with "merge_size" is "qwen", whose area is between
/// "min_pixels" (2^24 at most: the smallest picture becomes as large) and "max_pixels" (2^28 at
/// most), or size's "shortest_edge" and "longest_edge". Throws DataError naming file and key for
/// anything else: oblong sizes, a crop of another size, no resizing, no normalisation, another
/// rescale factor than 1 / 255; IoError if there is neither file.
HfPictures read_hf_pictures(const std::filesystem::path& directory);

/// Of each channel: a model sees (byte / 255 - mean) / std.
struct HfNorm {
  std::vector<double> mean, std;
};
/// Those of the same files, whatever else they say; nothing where there is no such file, or neither
/// "image_mean" nor "image_std" in it. Throws DataError naming file and key.
std::optional<HfNorm> read_hf_norm(const std::filesystem::path& directory);

/// preprocessor_config.json that reads back the same. `processor`: the class that transformers
/// makes of it.
Json to_json(const HfPictures& pictures, HfProcessor processor);

}  // namespace mm::run
