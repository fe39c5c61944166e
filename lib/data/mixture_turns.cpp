#include "lib/data/mixture_turns.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"

namespace mm::data {
namespace {

constexpr double kScale = 1e6;
__extension__ using Wide = unsigned __int128;

/// Weights in decimals that a person writes (0.3, 25) keep their exact ratios.
double scale_of(double largest) {
  double scale = kScale;
  while (largest * scale > 1e12) scale /= 10;
  while (largest * scale < 1e6) scale *= 10;
  return scale;
}

}  // namespace

MixtureTurns::MixtureTurns(std::span<const double> weights) : counts_(weights.size()) {
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight <= 0)
      throw UsageError("a weight is {}; weights must be above 0", weight);
  }
  const double largest = weights.empty() ? 1 : *std::max_element(weights.begin(), weights.end());
  const double scale = scale_of(largest);
  for (const double weight : weights) {
    if (weight * kScale < largest)
      throw UsageError("weights {} and {} differ by more than a million times", weight, largest);
    weights_.push_back(static_cast<uint64_t>(std::llround(weight * scale)));
    sum_ += weights_.back();
  }
}

size_t MixtureTurns::due() const {
  size_t best = weights_.size();
  for (size_t i = 0; i < weights_.size(); ++i) {
    const bool within = Wide{counts_[i]} * sum_ < Wide{weights_[i]} * (drawn_ + 1);
    if (!within) continue;
    if (best == weights_.size() ||
        Wide{weights_[i]} * (counts_[best] + 1) > Wide{weights_[best]} * (counts_[i] + 1)) {
      best = i;
    }
  }
  MM_CHECK(best < weights_.size(), "a source is always below its quota");
  return best;
}

void MixtureTurns::took(size_t source) {
  ++counts_[source];
  ++drawn_;
}

}  // namespace mm::data
