#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mm::data {

/// Which rows of a source were seen, in 24 bytes: their number and a sum of hashes of (row, key)
/// that does not depend on order. Rows that went in and rows that came out are the same, none lost
/// and none double, when their sets are equal (chance of a miss about 2^-128; not for secrets).
class RowSet {
 public:
  void add(uint64_t row, std::string_view key);
  void add(const RowSet& other);
  uint64_t count() const { return count_; }
  /// 32 hexadecimal digits.
  std::string hash() const;
  bool operator==(const RowSet&) const = default;

 private:
  uint64_t count_ = 0, low_ = 0, high_ = 0;
};

}  // namespace mm::data
