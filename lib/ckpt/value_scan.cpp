#include "lib/ckpt/value_scan.h"

#include <cstring>

namespace mm::ckpt {
namespace {

// IEEE formats and bfloat16 alike: all exponent bits set means infinite (mantissa 0) or NaN.
template <typename Word>
ValueCounts scan_floats(std::span<const std::byte> bytes, Word exponent_mask, Word mantissa_mask) {
  ValueCounts counts;
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    if ((word & exponent_mask) != exponent_mask) continue;
    ((word & mantissa_mask) != 0 ? counts.nan : counts.infinite) += 1;
  }
  return counts;
}

}  // namespace

ValueCounts& ValueCounts::operator+=(const ValueCounts& other) {
  nan += other.nan;
  infinite += other.infinite;
  bad_bool += other.bad_bool;
  return *this;
}

ValueCounts scan_values(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF16:
      return scan_floats<uint16_t>(bytes, 0x7C00, 0x03FF);
    case DType::kBF16:
      return scan_floats<uint16_t>(bytes, 0x7F80, 0x007F);
    case DType::kF32:
      return scan_floats<uint32_t>(bytes, 0x7F800000, 0x007FFFFF);
    case DType::kF64:
      return scan_floats<uint64_t>(bytes, 0x7FF0000000000000, 0x000FFFFFFFFFFFFF);
    case DType::kBool: {
      ValueCounts counts;
      for (const std::byte byte : bytes) counts.bad_bool += byte > std::byte{1} ? 1 : 0;
      return counts;
    }
    default:
      return {};
  }
}

}  // namespace mm::ckpt
