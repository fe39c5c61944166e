#include "lib/data/row_set.h"

#include <fmt/format.h>

#include "lib/base/hash.h"

namespace mm::data {

void RowSet::add(uint64_t row, std::string_view key) {
  // Two sums of independent hashes, the row number in the seed: modulo 2^64 each.
  const uint64_t seed = row * 0x9e3779b97f4a7c15u;
  low_ += xxh3_64(key, seed ^ 1);
  high_ += xxh3_64(key, ~seed);
  ++count_;
}

void RowSet::add(const RowSet& other) {
  count_ += other.count_;
  low_ += other.low_;
  high_ += other.high_;
}

std::string RowSet::hash() const { return fmt::format("{:016x}{:016x}", high_, low_); }

}  // namespace mm::data
