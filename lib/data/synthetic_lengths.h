#pragma once
#include <cstdint>
#include <vector>

#include "lib/data/epoch_plan.h"
#include "lib/image/image.h"

namespace mm::data {

/// Lengths as LLaVA-1.5's set has them: 576 tokens a picture, 94 % with one, text log-normal with a
/// median of 190 tokens, at most `longest` in all. For benches and tests; a pure function.
std::vector<SampleSize> llava_lengths(size_t samples, int32_t longest = 2048);
/// The any-resolution kind: 729 tokens a tile, none to ten tiles, the same text, at most `longest`.
std::vector<SampleSize> any_res_lengths(size_t samples, int32_t longest = 8192);
/// Sizes of pictures as the web has them: longer side log-normal with a median of 640 pixels, a
/// quarter square, the rest around 4:3, 3:2 and 16:9, lying and standing, with a broad tail.
std::vector<image::Size> web_picture_sizes(size_t pictures);

}  // namespace mm::data
