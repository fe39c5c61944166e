#pragma once
#include <cstdint>
#include <vector>

#include "lib/text/pair_table.h"

namespace mm::text {

/// Merge rules of a BPE: which pair of ids joins to which id, and in what order (0 first).
class MergeTable {
 public:
  struct Rule {
    int32_t rank = 0;
    int32_t id = -1;
  };
  /// False if the pair has a rule already.
  bool add(int32_t left, int32_t right, Rule rule) {
    return rules_.add(left, right, {rule.rank, rule.id});
  }
  /// The rule of the pair, with rank kNone if there is none.
  Rule find(int32_t left, int32_t right) const {
    const auto* found = rules_.find(left, right);
    return found != nullptr ? Rule{found->first, found->second} : Rule{kNone, -1};
  }
  static constexpr int32_t kNone = INT32_MAX;

 private:
  PairTable rules_;
};

/// One symbol of a word while it is merged: an id and the byte at which it begins.
struct Symbol {
  int32_t id = -1;
  uint32_t begin = 0;
};

/// Room to merge in, to be reused from word to word.
struct MergeRoom {
  std::vector<MergeTable::Rule> rules;
  std::vector<uint32_t> next, previous;
  std::vector<uint64_t> queue;  ///< rank and place of pairs that may be merged
};

/// Applies the rules to the symbols from `first` on, in place: lowest rank first, leftmost first
/// among equals, until none applies. O(n^2) for short words, whose constant is small, else
/// O(n log n).
void merge_symbols(std::vector<Symbol>& symbols, size_t first, const MergeTable& table,
                   MergeRoom& room);

}  // namespace mm::text
