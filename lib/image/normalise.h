#pragma once
#include <array>
#include <span>
#include <vector>

#include "lib/image/image.h"

namespace mm::image {

/// Channel means and standard deviations of values in [0, 1].
struct Normalisation {
  std::array<double, 3> mean{0.48145466, 0.4578275, 0.40821073};        ///< CLIP's
  std::array<double, 3> deviation{0.26862954, 0.26130258, 0.27577711};  ///< CLIP's
};

/// (byte / 255 - mean) / deviation, from [height, width, 3] bytes to [3, height, width] floats. One
/// table of 256 values per channel, so each result is the correctly rounded value of the formula in
/// double.
void normalise(std::span<const uint8_t> rgb, const Normalisation& normalisation,
               std::span<float> out);
std::vector<float> normalise(const Image& in, const Normalisation& normalisation = {});

}  // namespace mm::image
