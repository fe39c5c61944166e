#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/merges.h"

namespace mm::text {

/// Remembers the symbols of words, since a text repeats few words often. Not thread-safe: one a
/// thread. Memory is bounded (about 2 MiB); when it is full it starts anew.
class WordCache {
 public:
  /// What is remembered of a word; empty if nothing (or if the word is too long to remember).
  /// Valid until the next call of `insert`.
  std::span<const Symbol> find(std::string_view word);
  /// Remembers the word that `find` was asked for last and did not know. `symbols` not empty.
  void insert(std::string_view word, std::span<const Symbol> symbols);

 private:
  static constexpr size_t kSlots = size_t{1} << 15;
  static constexpr size_t kMaxWords = kSlots / 2;
  static constexpr size_t kMaxWordBytes = 64;
  static constexpr size_t kMaxSymbols = 16;

  struct Slot {
    uint32_t hash = 0;
    uint32_t key = 0, symbols = 0;  ///< where they begin
    uint16_t key_bytes = 0;         ///< 0: free
    uint16_t symbol_count = 0;
  };
  void clear();

  std::vector<Slot> slots_;
  std::string keys_;
  std::vector<Symbol> symbols_;
  size_t words_ = 0;
  uint64_t hash_ = 0;  ///< of the word that `find` was asked for last
};

}  // namespace mm::text
