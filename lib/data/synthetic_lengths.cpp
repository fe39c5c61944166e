#include "lib/data/synthetic_lengths.h"

#include <algorithm>
#include <cmath>

#include "lib/base/random.h"

namespace mm::data {
namespace {

constexpr double kMedianText = 190, kTextSigma = 0.8;

SampleSize sample_of(const Philox& random, uint64_t i, int32_t images, int32_t image_tokens,
                     int32_t longest) {
  const double text = kMedianText * std::exp(kTextSigma * random.normal(3 * i));
  const auto text_tokens = static_cast<int32_t>(std::clamp(text, 8.0, 1e6));
  const int32_t tokens = std::min(images * image_tokens + text_tokens, longest);
  return {.tokens = tokens, .images = images, .targets = std::max(1, text_tokens / 2)};
}

}  // namespace

std::vector<SampleSize> llava_lengths(size_t samples, int32_t longest) {
  const Philox random(1, "llava lengths");
  const Philox kind = random.child("images");
  std::vector<SampleSize> sizes;
  for (uint64_t i = 0; i < samples; ++i)
    sizes.push_back(sample_of(random, i, kind.uniform(i) < 0.94 ? 1 : 0, 576, longest));
  return sizes;
}

std::vector<SampleSize> any_res_lengths(size_t samples, int32_t longest) {
  const Philox random(1, "any-res lengths");
  const Philox kind = random.child("images");
  std::vector<SampleSize> sizes;
  for (uint64_t i = 0; i < samples; ++i)
    sizes.push_back(sample_of(random, i, static_cast<int32_t>(kind.below(i, 11)), 729, longest));
  return sizes;
}

}  // namespace mm::data
