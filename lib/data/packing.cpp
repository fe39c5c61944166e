#include "lib/data/packing.h"

#include <algorithm>
#include <limits>

namespace mm::data {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 4;

struct OpenPack {
  std::vector<uint32_t> rows;
  PackRoom room;
};

}  // namespace

PackLimits limits_of(const PlanOptions& options) {
  return {options.sequence_length, options.max_images, options.max_attention_pairs};
}

PackRoom PackRoom::of(const PackLimits& limits) {
  return {limits.tokens, limits.images > 0 ? limits.images : kEndless,
          limits.attention_pairs > 0 ? limits.attention_pairs : kEndless};
}

int64_t PackRoom::times(int64_t sample_tokens, int64_t sample_images, int64_t limit) const {
  if (sample_tokens > 0) {
    limit = std::min({limit, tokens / sample_tokens, pairs / attention_pairs_of(sample_tokens)});
  }
  if (sample_images > 0) limit = std::min(limit, images / sample_images);
  return limit;
}

PackList pack_in_order(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
                       const PackLimits& limits) {
  PackList packs;
  std::vector<OpenPack> open;
  for (const uint32_t row : rows) {
    const SampleSize& size = sizes[row];
    auto place = std::find_if(open.begin(), open.end(), [&](const OpenPack& pack) {
      return pack.room.fits(size.tokens, size.images);
    });
    if (place == open.end()) {
      if (open.size() == kOpenPacks) {
        const auto fullest = std::min_element(
            open.begin(), open.end(),
            [](const OpenPack& a, const OpenPack& b) { return a.room.tokens < b.room.tokens; });
        packs.add(fullest->rows);
        open.erase(fullest);
      }
      place = open.insert(open.end(), OpenPack{{}, PackRoom::of(limits)});
    }
    place->rows.push_back(row);
    place->room.take(size.tokens, size.images);
  }
  for (const OpenPack& pack : open) packs.add(pack.rows);
  return packs;
}

}  // namespace mm::data
