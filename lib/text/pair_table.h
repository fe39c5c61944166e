#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mm::text {

/// A hash table from pairs of non-negative numbers to pairs of numbers: open addressing with linear
/// probing, 16 bytes an entry, at most 5/8 full. Readers may share it once it is filled.
class PairTable {
 public:
  struct Value {
    int32_t first = 0, second = 0;
  };

  /// False if the key is there already.
  bool add(int32_t left, int32_t right, Value value) {
    if (8 * (count_ + 1) > 5 * entries_.size()) grow();
    Entry& entry = entries_[slot(left, right)];
    if (entry.left >= 0) return false;
    entry = {left, right, value};
    ++count_;
    return true;
  }
  /// nullptr if there is none.
  const Value* find(int32_t left, int32_t right) const {
    if (count_ == 0) return nullptr;
    const Entry& entry = entries_[slot(left, right)];
    return entry.left >= 0 ? &entry.value : nullptr;
  }
  /// As find; the value may be changed.
  Value* find_mutable(int32_t left, int32_t right) { return const_cast<Value*>(find(left, right)); }
  size_t size() const { return count_; }

 private:
  struct Entry {
    int32_t left = -1, right = 0;
    Value value;
  };

  // Fibonacci hashing: the high bits of a product are the mixed ones.
  size_t slot(int32_t left, int32_t right) const {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    uint64_t mixed = key * 0x9E3779B97F4A7C15ULL;
    mixed ^= mixed >> 32;
    mixed *= 0xD6E8FEB86659FD93ULL;
    size_t at = mixed >> shift_;
    while (entries_[at].left >= 0 && (entries_[at].left != left || entries_[at].right != right))
      at = at + 1 == entries_.size() ? 0 : at + 1;
    return at;
  }

  void grow() {
    std::vector<Entry> old(entries_.empty() ? 16 : 2 * entries_.size());
    old.swap(entries_);
    shift_ = 64 - std::countr_zero(entries_.size());
    for (const Entry& entry : old) {
      if (entry.left >= 0) entries_[slot(entry.left, entry.right)] = entry;
    }
  }

  std::vector<Entry> entries_;
  size_t count_ = 0;
  int shift_ = 64;
};

}  // namespace mm::text
