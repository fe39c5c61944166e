#include "lib/data/packing.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace mm::data {
namespace {

void add_row(Pack& pack, std::span<const SampleSize> sizes, uint32_t row) {
  const SampleSize& size = sizes[row];
  pack.samples.push_back(row);
  pack.tokens += size.tokens;
  pack.images += size.images;
  pack.targets += size.targets;
  pack.attention_pairs += 0.5 * size.tokens * (size.tokens + 1.0);
}

/// Open packs ordered by free tokens, fullest first.
class OpenPacks {
 public:
  OpenPacks(std::vector<Pack>& packs, const PackLimits& limits) : packs_(packs), limits_(limits) {}

  /// Index of the fullest pack that takes the sample, or -1.
  int64_t find(const SampleSize& size) {
    int tries = 0;
    for (auto it = open_.lower_bound({size.tokens, 0}); it != open_.end() && tries < kFitTries;
         ++it, ++tries) {
      if (limits_.images == 0 || packs_[it->second].images + size.images <= limits_.images) {
        const auto index = it->second;
        open_.erase(it);
        return index;
      }
    }
    return -1;
  }

  void insert(uint32_t index) {
    const int64_t free_tokens = limits_.tokens - packs_[index].tokens;
    if (free_tokens > 0) open_.insert({free_tokens, index});
  }

 private:
  std::vector<Pack>& packs_;
  const PackLimits limits_;
  std::set<std::pair<int64_t, uint32_t>> open_;
};

}  // namespace

std::vector<Pack> pack_rows(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
                            const PackLimits& limits) {
  std::vector<uint32_t> order(rows.begin(), rows.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return sizes[a].tokens > sizes[b].tokens; });
  std::vector<Pack> packs;
  OpenPacks open(packs, limits);
  for (const uint32_t row : order) {
    int64_t index = open.find(sizes[row]);
    if (index < 0) {
      index = static_cast<int64_t>(packs.size());
      packs.emplace_back();
    }
    add_row(packs[static_cast<size_t>(index)], sizes, row);
    open.insert(static_cast<uint32_t>(index));
  }
  return packs;
}

std::vector<Pack> pack_in_order(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
                                const PackLimits& limits) {
  std::vector<Pack> packs, open;
  const auto fits = [&](const Pack& pack, const SampleSize& size) {
    return pack.tokens + size.tokens <= limits.tokens &&
           (limits.images == 0 || pack.images + size.images <= limits.images);
  };
  for (const uint32_t row : rows) {
    auto place = std::find_if(open.begin(), open.end(),
                              [&](const Pack& pack) { return fits(pack, sizes[row]); });
    if (place == open.end()) {
      if (open.size() == kOpenPacks) {
        const auto fullest =
            std::max_element(open.begin(), open.end(),
                             [](const Pack& a, const Pack& b) { return a.tokens < b.tokens; });
        packs.push_back(std::move(*fullest));
        open.erase(fullest);
      }
      place = open.insert(open.end(), Pack{});
    }
    add_row(*place, sizes, row);
  }
  std::move(open.begin(), open.end(), std::back_inserter(packs));
  return packs;
}

Pack make_pack(std::span<const SampleSize> sizes, std::vector<uint32_t> rows) {
  Pack pack;
  for (const uint32_t row : rows) add_row(pack, sizes, row);
  return pack;
}

}  // namespace mm::data
