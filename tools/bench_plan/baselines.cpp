#include "tools/bench_plan/baselines.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace mm::bench {
namespace {

struct Open {
  int64_t tokens = 0, images = 0;
};

void close(const Open& pack, const data::PackLimits& limits, BaselineResult& result) {
  ++result.packs;
  if (limits.images > 0 && pack.images > limits.images) ++result.over_image_cap;
}

std::vector<data::SampleSize> longest_first(std::span<const data::SampleSize> sizes) {
  std::vector<data::SampleSize> sorted(sizes.begin(), sizes.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.tokens > b.tokens; });
  return sorted;
}

}  // namespace

BaselineResult next_fit(std::span<const data::SampleSize> sizes, const data::PackLimits& limits) {
  BaselineResult result;
  Open pack;
  for (const data::SampleSize& size : sizes) {
    if (pack.tokens + size.tokens > limits.tokens) {
      close(pack, limits, result);
      pack = {};
    }
    pack.tokens += size.tokens;
    pack.images += size.images;
  }
  if (pack.tokens > 0) close(pack, limits, result);
  return result;
}

BaselineResult greedy_knapsack(std::span<const data::SampleSize> sizes,
                               const data::PackLimits& limits, size_t buffer) {
  BaselineResult result;
  for (size_t begin = 0; begin < sizes.size(); begin += buffer) {
    std::multimap<int32_t, int32_t> left;  // tokens -> images
    for (const auto& size : sizes.subspan(begin, std::min(buffer, sizes.size() - begin)))
      left.emplace(size.tokens, size.images);
    while (!left.empty()) {
      Open pack;
      for (;;) {
        auto after = left.upper_bound(static_cast<int32_t>(limits.tokens - pack.tokens));
        if (after == left.begin()) break;
        --after;
        pack.tokens += after->first;
        pack.images += after->second;
        left.erase(after);
      }
      close(pack, limits, result);
    }
  }
  return result;
}

BaselineResult best_fit_decreasing(std::span<const data::SampleSize> sizes,
                                   const data::PackLimits& limits) {
  BaselineResult result;
  std::multimap<int64_t, Open> open;  // room in tokens -> pack
  for (const data::SampleSize& size : longest_first(sizes)) {
    const auto place = open.lower_bound(size.tokens);
    Open pack;
    if (place != open.end()) {
      pack = place->second;
      open.erase(place);
    }
    pack.tokens += size.tokens;
    pack.images += size.images;
    open.emplace(limits.tokens - pack.tokens, pack);
  }
  for (const auto& [room, pack] : open) close(pack, limits, result);
  return result;
}

}  // namespace mm::bench
