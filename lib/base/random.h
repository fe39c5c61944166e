#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace mm {

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
/// 1, 2, 3", SC 2011). A draw is a pure function of (key, counter): no state, nothing to save, the
/// same on every rank and layout (law 1).
class Philox {
 public:
  /// The usual way in: streams are told apart by seed and purpose ("init", "shuffle", "noise").
  Philox(uint64_t seed, std::string_view purpose);
  explicit Philox(uint64_t key) : key_(key) {}
  /// A stream below this one, e.g. per parameter name, epoch or sample id.
  Philox child(uint64_t id) const;
  Philox child(std::string_view name) const;

  /// Four 32-bit words of block `index` (and `high`, the upper 64 bits of the 128-bit counter).
  std::array<uint32_t, 4> block(uint64_t index, uint64_t high = 0) const;
  uint64_t u64(uint64_t index) const;
  /// In [0, 1), 53 bits.
  double uniform(uint64_t index) const;
  /// Standard normal by Box-Muller; element `index` of the stream.
  double normal(uint64_t index) const;
  /// Unbiased enough for planning: multiply-shift of 64 bits. `bound` > 0.
  uint64_t below(uint64_t index, uint64_t bound) const;
  uint64_t key() const { return key_; }

 private:
  uint64_t key_;
};

}  // namespace mm
