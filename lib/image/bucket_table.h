#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/image/image.h"

namespace mm::image {

/// Tables of published models: "sdxl" (nine shapes of about 1024 x 1024), "pixart-256",
/// "pixart-512", "pixart-1024" (forty ratios each). Empty for other words.
std::vector<Size> bucket_preset(std::string_view name);
/// The words, with commas.
std::string_view bucket_preset_names();

/// What buckets of one resolution are made from.
struct BucketRule {
  int64_t pixels = 0;     ///< of a bucket at most
  int32_t multiple = 64;  ///< of which both sides are multiples
  double ratio = 2;       ///< longer / shorter side at most
};

/// For each height that is a multiple the widest bucket within the area, with its turned twin:
/// squares first, then ever longer ones. 1024 x 1024 pixels, multiple 64, ratio 2: 1024x1024,
/// 1088x960, 960x1088, 1152x896, ... Empty where the area holds none.
std::vector<Size> derive_buckets(const BucketRule& rule);

}  // namespace mm::image
