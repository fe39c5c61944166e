#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// Samples that no packer needs to tell apart.
struct LengthType {
  int32_t tokens = 0;
  int32_t images = 0;
  uint64_t count = 0;
};

/// The histogram of a set's lengths: packing works on types, so its work grows with the number of
/// different lengths and not with that of samples.
struct LengthTypes {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<LengthType> types;  ///< longest first, then most images first; counts > 0
  std::vector<uint32_t> type_of;  ///< [sizes]: index into types; kNone for rows that are left out
};

/// `skip` are ascending rows to leave out. O(n) and O(types log types).
LengthTypes length_types(std::span<const SampleSize> sizes, std::span<const uint32_t> skip = {});

}  // namespace mm::data
