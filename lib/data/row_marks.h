#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

namespace mm::data {

/// A bit a row, set once and for all. Thread-safe; a bit that is set orders nothing else.
class RowMarks {
 public:
  explicit RowMarks(uint64_t rows) : words_((rows + 63) / 64) {}
  bool test(uint64_t row) const {
    return (words_[row / 64].load(std::memory_order_relaxed) >> (row % 64) & 1) != 0;
  }
  void set(uint64_t row) {
    words_[row / 64].fetch_or(uint64_t{1} << (row % 64), std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<uint64_t>> words_;
};

}  // namespace mm::data
