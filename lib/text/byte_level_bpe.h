#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/text/split_pattern.h"
#include "lib/text/vocabulary.h"

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
    return rules_.try_emplace(key(left, right), rule).second;
  }
  const Rule* find(int32_t left, int32_t right) const {
    const auto found = rules_.find(key(left, right));
    return found == rules_.end() ? nullptr : &found->second;
  }

 private:
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  std::unordered_map<uint64_t, Rule> rules_;
};

/// One symbol of a word while it is merged: an id and the byte at which it begins.
struct Symbol {
  int32_t id = -1;
  uint32_t begin = 0;
};

/// Applies the rules to a word: lowest rank first, leftmost first among equals, until none applies.
/// O(n log n).
std::vector<Symbol> merge_symbols(std::vector<Symbol> symbols, const MergeTable& table);

struct ByteLevelBpeParts {
  MergeTable merges;
  SplitPattern pattern = SplitPattern::whole();
  bool nfc = false;            ///< text is brought to Unicode normal form C first
  bool ignore_merges = false;  ///< a word that is a piece is taken whole
};

std::unique_ptr<Tokenizer> make_byte_level_bpe(TokenizerJsonParts parts, ByteLevelBpeParts bpe);

}  // namespace mm::text
