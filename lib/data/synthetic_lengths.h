#pragma once
#include <cstdint>
#include <vector>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// Lengths as LLaVA-1.5's set has them: 576 tokens a picture, 94 % with one, text log-normal with a
/// median of 190 tokens, at most `longest` in all. For benches and tests; a pure function.
std::vector<SampleSize> llava_lengths(size_t samples, int32_t longest = 2048);
/// The any-resolution kind: 729 tokens a tile, none to ten tiles, the same text, at most `longest`.
std::vector<SampleSize> any_res_lengths(size_t samples, int32_t longest = 8192);

}  // namespace mm::data
