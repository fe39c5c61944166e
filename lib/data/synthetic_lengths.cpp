#include "lib/data/synthetic_lengths.h"

#include <algorithm>
#include <array>
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

/// Longer / shorter side of picture `i`.
double ratio_of(const Philox& random, uint64_t i) {
  const double kind = random.uniform(2 * i);
  if (kind < 0.25) return 1;
  constexpr std::array kUsual = {4.0 / 3, 4.0 / 3, 1.5, 1.5, 16.0 / 9};
  const double usual = kUsual[random.below(2 * i + 1, kUsual.size())];
  if (kind < 0.7) return usual;
  return std::exp(std::fabs(0.45 * random.normal(i)));
}

}  // namespace

std::vector<image::Size> web_picture_sizes(size_t pictures) {
  constexpr double kMedianSide = 640, kSideSigma = 0.55;
  const Philox random(1, "web pictures");
  const Philox side = random.child("side"), ratio = random.child("ratio");
  const Philox turn = random.child("turn");
  std::vector<image::Size> sizes;
  sizes.reserve(pictures);
  for (uint64_t i = 0; i < pictures; ++i) {
    const double longer =
        std::clamp(kMedianSide * std::exp(kSideSigma * side.normal(i)), 64.0, 8000.0);
    const auto most = static_cast<int32_t>(longer);
    const int32_t least = std::max(16, static_cast<int32_t>(longer / ratio_of(ratio, i)));
    sizes.push_back(turn.uniform(i) < 0.6 ? image::Size{most, least} : image::Size{least, most});
  }
  return sizes;
}

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
