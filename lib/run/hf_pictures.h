#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::run {

/// How a published model wants its pictures: one square a picture.
struct HfPictures {
  std::string geometry;  ///< "crop", "pad", "squash": words of lib/image
  std::string filter;    ///< a word of lib/image
  int64_t side = 0;      ///< pixels
  std::vector<double> mean{0.48145466, 0.4578275, 0.40821073};  ///< CLIP's, in units of [0, 1]
  std::vector<double> std{0.26862954, 0.26130258, 0.27577711};
};

/// From preprocessor_config.json, or the "image_processor" of processor_config.json (transformers
/// 5), in both spellings of sizes: a number or {"height", "width"}, {"shortest_edge"}. Shortest
/// edge and centre crop of the same side is "crop"; "do_pad" is "pad"; a fixed height and width
/// without a crop is "squash". Throws DataError naming file and key for anything else: oblong
/// sizes, a crop of another size, no resizing, no normalisation, another rescale factor than 1 /
/// 255; IoError if there is neither file.
HfPictures read_hf_pictures(const std::filesystem::path& directory);

/// preprocessor_config.json that reads back the same. `siglip` chooses the class that transformers
/// makes of it.
Json to_json(const HfPictures& pictures, bool siglip);

}  // namespace mm::run
