#include "lib/data/pack_bound.h"

#include <algorithm>
#include <vector>

#include "lib/data/pack_grid.h"
#include "lib/data/pack_lp.h"

namespace mm::data {
namespace {

// Sums of 10^9 samples' pairs of 10^6 tokens pass 64 bits.
__extension__ using Wide = unsigned __int128;

constexpr size_t kBoundClasses = 192;
/// Prices are whole multiples of a pack's 2^-30: sums of up to 2^33 packs stay exact.
constexpr double kPriceScale = 1 << 30;

uint64_t shares(Wide sum, int64_t capacity) {
  const auto divisor = static_cast<Wide>(capacity);
  return static_cast<uint64_t>((sum + divisor - 1) / divisor);
}

template <typename Size>
uint64_t sum_bound(std::span<const LengthType> types, int64_t capacity, Size size) {
  if (capacity <= 0) return 0;
  Wide sum = 0;
  for (const LengthType& type : types) sum += Wide{type.count} * static_cast<uint64_t>(size(type));
  return shares(sum, capacity);
}

/// Prefix sums over types, longest first.
struct Prefix {
  std::vector<uint64_t> count{0}, tokens{0};
  explicit Prefix(std::span<const LengthType> types) {
    for (const LengthType& type : types) {
      count.push_back(count.back() + type.count);
      tokens.push_back(tokens.back() + type.count * static_cast<uint64_t>(type.tokens));
    }
  }
};

/// L2: samples above capacity - small need a pack each, those above half too, and what the small
/// ones of at least `small` tokens overflow from the latter needs more.
uint64_t pairs_bound(std::span<const LengthType> types, int64_t capacity) {
  const Prefix prefix(types);
  const auto first_below = [&](int64_t tokens) {
    return static_cast<size_t>(
        std::partition_point(types.begin(), types.end(),
                             [&](const LengthType& type) { return type.tokens >= tokens; }) -
        types.begin());
  };
  const size_t half = first_below(capacity / 2 + 1);
  uint64_t best = prefix.count[half];
  for (size_t t = half; t < types.size(); ++t) {
    const int64_t small = types[t].tokens;
    const size_t large = first_below(capacity - small + 1);
    const uint64_t middle_packs = prefix.count[half] - prefix.count[large];
    const uint64_t room = middle_packs * static_cast<uint64_t>(capacity) -
                          (prefix.tokens[half] - prefix.tokens[large]);
    const uint64_t need = prefix.tokens[t + 1] - prefix.tokens[half];
    const uint64_t more = need > room ? shares(need - room, capacity) : 0;
    best = std::max(best, prefix.count[half] + more);
  }
  return best;
}

/// Prices of classes rounded down, applied to those classes: any pack of real samples is one of the
/// relaxed knapsack, so none is worth more than its optimum.
uint64_t price_bound(std::span<const LengthType> types, const PackLimits& limits) {
  const auto classes = merge_lengths(types, kBoundClasses, Rounding::kDown);
  const LpSolution solution = solve_packing_lp(classes, limits, Rounding::kDown);
  const PackGrid grid(limits, Rounding::kDown);
  std::vector<PackGrid::Cell> cells;
  std::vector<int64_t> prices, values;
  Wide worth = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto cell = grid.cell(classes[c].tokens, classes[c].images);
    const bool empty = cell.tokens == 0 && cell.images == 0 && cell.pairs == 0;
    const double price = std::clamp(solution.prices[c], 0.0, 1.0);
    cells.push_back(cell);
    prices.push_back(empty ? 0 : static_cast<int64_t>(price * kPriceScale));
    worth += Wide{classes[c].count} * static_cast<uint64_t>(prices.back());
  }
  fill_knapsack<int64_t>(grid, cells, prices, values);
  const int64_t dearest = values[grid.index(grid.whole())];
  return dearest > 0 ? shares(worth, dearest) : 0;
}

}  // namespace

PackBound pack_bound(std::span<const LengthType> types, const PackLimits& limits, bool prices) {
  if (types.empty()) return {0, "sum"};
  PackBound bound{1, "sum"};
  const auto offer = [&](uint64_t packs, std::string_view proof) {
    if (packs > bound.packs) bound = {packs, proof};
  };
  offer(sum_bound(types, limits.tokens, [](const LengthType& t) { return t.tokens; }), "sum");
  offer(sum_bound(types, limits.images, [](const LengthType& t) { return t.images; }), "sum");
  offer(sum_bound(types, limits.attention_pairs,
                  [](const LengthType& t) { return attention_pairs_of(t.tokens); }),
        "sum");
  offer(pairs_bound(types, limits.tokens), "pairs");
  if (prices) offer(price_bound(types, limits), "prices");
  return bound;
}

}  // namespace mm::data
