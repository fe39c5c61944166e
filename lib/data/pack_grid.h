#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/pack_lp.h"

namespace mm::data {

/// The capacities of a pack as whole units of a grid that is small enough for dynamic programming:
/// at most about kGridStates states. Sizes are rounded onto it up or down.
class PackGrid {
 public:
  static constexpr int64_t kGridStates = 1 << 18;
  struct Cell {
    int32_t tokens = 0, images = 0, pairs = 0;
  };

  PackGrid(const PackLimits& limits, Rounding rounding);
  /// Units that a sample takes up.
  Cell cell(int32_t tokens, int32_t images) const;
  Cell whole() const { return whole_; }
  size_t states() const { return states_; }
  size_t index(const Cell& c) const {
    return (static_cast<size_t>(c.pairs) * static_cast<size_t>(whole_.images + 1) +
            static_cast<size_t>(c.images)) *
               static_cast<size_t>(whole_.tokens + 1) +
           static_cast<size_t>(c.tokens);
  }

 private:
  int32_t units(int64_t value, int64_t unit) const;
  Rounding rounding_;
  int64_t token_unit_ = 1, image_unit_ = 0, pair_unit_ = 0;  ///< 0: no such capacity
  Cell whole_;
  size_t states_ = 0;
};

/// Not checked by sanitizers: it takes nearly all the time of planning, in vectors, and its borders
/// are those of fill_knapsack below.
template <typename Value>
__attribute__((no_sanitize("address,undefined"))) void raise_values(Value* __restrict to,
                                                                    const Value* __restrict from,
                                                                    int64_t count, Value price) {
  for (int64_t t = 0; t < count; ++t) {
    const Value with = from[t] + price;
    to[t] = with > to[t] ? with : to[t];
  }
}

/// values[grid.index(c)] = dearest content of a pack with room c, samples of each kind without
/// end. `cells` and `prices` go together; prices <= 0 are left out. O(kinds * states).
template <typename Value>
void fill_knapsack(const PackGrid& grid, std::span<const PackGrid::Cell> cells,
                   std::span<const Value> prices, std::vector<Value>& values) {
  values.assign(grid.states(), Value{0});
  const PackGrid::Cell whole = grid.whole();
  for (size_t k = 0; k < cells.size(); ++k) {
    const PackGrid::Cell& c = cells[k];
    const Value price = prices[k];
    if (!(price > Value{0})) continue;
    for (int32_t p = c.pairs; p <= whole.pairs; ++p) {
      for (int32_t i = c.images; i <= whole.images; ++i) {
        Value* to = &values[grid.index({c.tokens, i, p})];
        const Value* from = &values[grid.index({0, i - c.images, p - c.pairs})];
        const int64_t n = whole.tokens - c.tokens + 1;
        // In steps of the distance nothing read was just written: the inner loop runs in vectors.
        const int64_t distance = std::max<int64_t>(to - from, 1);
        for (int64_t begin = 0; begin < n; begin += distance) {
          raise_values(to + begin, from + begin, std::min(distance, n - begin), price);
        }
      }
    }
  }
}

}  // namespace mm::data
