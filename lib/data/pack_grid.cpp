#include "lib/data/pack_grid.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::data {
namespace {

constexpr int64_t kImageUnits = 63;
constexpr int64_t kPairUnits = 31;

int64_t unit_for(int64_t capacity, int64_t most) { return (capacity + most - 1) / most; }

}  // namespace

PackGrid::PackGrid(const PackLimits& limits, Rounding rounding) : rounding_(rounding) {
  MM_CHECK(limits.tokens > 0, "capacity of {} tokens", limits.tokens);
  if (limits.images > 0) {
    image_unit_ = unit_for(limits.images, kImageUnits);
    whole_.images = static_cast<int32_t>(limits.images / image_unit_);
  }
  if (limits.attention_pairs > 0) {
    pair_unit_ = unit_for(limits.attention_pairs, kPairUnits);
    whole_.pairs = static_cast<int32_t>(limits.attention_pairs / pair_unit_);
  }
  const int64_t layers = int64_t{whole_.images + 1} * (whole_.pairs + 1);
  token_unit_ = unit_for(limits.tokens, std::clamp<int64_t>(kGridStates / layers, 64, 4096));
  whole_.tokens = static_cast<int32_t>(limits.tokens / token_unit_);
  states_ = static_cast<size_t>(layers) * static_cast<size_t>(whole_.tokens + 1);
}

int32_t PackGrid::units(int64_t value, int64_t unit) const {
  if (unit == 0) return 0;
  return static_cast<int32_t>((rounding_ == Rounding::kUp ? value + unit - 1 : value) / unit);
}

PackGrid::Cell PackGrid::cell(int32_t tokens, int32_t images) const {
  return {units(tokens, token_unit_), units(images, image_unit_),
          units(attention_pairs_of(tokens), pair_unit_)};
}

}  // namespace mm::data
