#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include "lib/base/random.h"

namespace mm::data {

/// Fisher-Yates with a counter-based stream: the result depends only on the stream and the count.
/// O(n).
template <typename T>
void shuffle(std::span<T> items, const Philox& random) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(i, i)]);
  }
}

}  // namespace mm::data
