#include "lib/data/length_types.h"

#include <algorithm>
#include <unordered_map>

namespace mm::data {
namespace {

uint64_t key_of(int32_t tokens, int32_t images) {
  return static_cast<uint64_t>(static_cast<uint32_t>(tokens)) << 32 | static_cast<uint32_t>(images);
}

}  // namespace

LengthTypes length_types(std::span<const SampleSize> sizes, std::span<const uint32_t> skip) {
  LengthTypes result;
  result.type_of.assign(sizes.size(), LengthTypes::kNone);
  std::unordered_map<uint64_t, uint32_t> known;
  size_t next_skip = 0;
  for (size_t row = 0; row < sizes.size(); ++row) {
    if (next_skip < skip.size() && skip[next_skip] == row) {
      ++next_skip;
      continue;
    }
    const auto [place, is_new] = known.try_emplace(key_of(sizes[row].tokens, sizes[row].images),
                                                   static_cast<uint32_t>(result.types.size()));
    if (is_new) result.types.push_back({sizes[row].tokens, sizes[row].images, 0});
    ++result.types[place->second].count;
    result.type_of[row] = place->second;
  }
  std::vector<uint32_t> order(result.types.size()), rank(result.types.size());
  for (uint32_t t = 0; t < order.size(); ++t) order[t] = t;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const LengthType &x = result.types[a], &y = result.types[b];
    return x.tokens != y.tokens ? x.tokens > y.tokens : x.images > y.images;
  });
  std::vector<LengthType> sorted;
  for (uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted.push_back(result.types[order[i]]);
  }
  result.types = std::move(sorted);
  for (uint32_t& type : result.type_of) {
    if (type != LengthTypes::kNone) type = rank[type];
  }
  return result;
}

}  // namespace mm::data
