#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mm::data {

/// Whose turn it is in a mixture. After every draw n, source i has been taken floor(n w_i) or
/// ceil(n w_i) times, w_i its share of the weights: the quota method of Balinski and Young. Among
/// sources that stay within their quota, the one with the largest weight per draw to come is due;
/// of equal ones the first. Weights count to a millionth of the largest, in integers, so no
/// rounding ever builds up. O(sources) a draw.
class MixtureTurns {
 public:
  /// Throws UsageError unless all are above 0, finite, and within a factor of a million.
  explicit MixtureTurns(std::span<const double> weights);
  size_t due() const;
  void took(size_t source);
  uint64_t count(size_t source) const { return counts_[source]; }

 private:
  std::vector<uint64_t> weights_, counts_;
  uint64_t sum_ = 0, drawn_ = 0;
};

}  // namespace mm::data
