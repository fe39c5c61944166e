#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/length_types.h"
#include "lib/data/packing.h"

namespace mm::data {

/// Packs by what they hold and how often: pattern p holds the types items[begin[p] .. begin[p + 1])
/// (a type as often as it occurs) and stands for times[p] packs. Every packer below is a pure
/// function of (types, limits): no order, no seed, no thread count. `types` are sorted as
/// length_types does; every one fits the limits; the result holds each type exactly `count` times.
struct PackPatterns {
  std::vector<uint32_t> items;
  std::vector<uint64_t> begin{0};
  std::vector<uint64_t> times;

  size_t size() const { return times.size(); }
  std::span<const uint32_t> pattern(size_t p) const {
    return std::span(items).subspan(begin[p], begin[p + 1] - begin[p]);
  }
  uint64_t packs() const;
  void add(std::span<const uint32_t> pattern, uint64_t pattern_times);
  void add(const PackPatterns& more);
};

/// One pack after the other: always the longest sample that still fits. O(types * items) or so.
PackPatterns pack_greedy(std::span<const LengthType> types, const PackLimits& limits);

/// Best-fit decreasing: longest sample first, each into the fullest pack that takes it. The packs
/// equal those of the sample-by-sample rule but for the kFitTries groups of like packs that are
/// looked at before a new pack is opened. O(types * (groups + kFitTries)).
PackPatterns pack_best_fit(std::span<const LengthType> types, const PackLimits& limits);
inline constexpr int kFitTries = 256;

/// One pack after the other: the longest sample, then those that leave the least room (minimum bin
/// slack: Gupta and Ho, "A new heuristic algorithm for the one-dimensional bin-packing problem",
/// 1999), by depth-first search of at most kFillNodes nodes a pattern.
PackPatterns pack_exact(std::span<const LengthType> types, const PackLimits& limits);
inline constexpr int kFillNodes = 20'000;

/// Counts of samples still to pack, by type, with jumps over the types that have run out.
class TypeStock {
 public:
  explicit TypeStock(std::span<const LengthType> types);
  /// First type at or after `from` that has samples left; types.size() if none has.
  uint32_t next(uint32_t from);
  /// First type of at most `tokens` tokens that has samples left.
  uint32_t next_at_most(int64_t tokens);
  uint64_t left(uint32_t type) const { return left_[type]; }
  void take(uint32_t type, uint64_t count) { left_[type] -= count; }
  /// How often the pattern can be taken; takes it that often.
  uint64_t take_all(std::span<const uint32_t> pattern);

 private:
  std::span<const LengthType> types_;
  std::vector<uint64_t> left_;
  std::vector<uint32_t> jump_;
};

}  // namespace mm::data
