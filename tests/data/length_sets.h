#pragma once
#include <filesystem>
#include <vector>

#include "lib/base/random.h"
#include "lib/data/length_table.h"

namespace mm::data::test {

/// 70,706 real lengths; tests/field/lengths/README.md says where they are from.
inline std::filesystem::path internvl_file() {
  return std::filesystem::path(MM_TEST_DATA) / "field/lengths/internvl_lengths.csv.gz";
}
inline std::vector<SampleSize> internvl_lengths() { return read_lengths(internvl_file()).sizes; }

inline std::vector<SampleSize> random_sizes(size_t count, int32_t longest, uint64_t seed) {
  const mm::Philox random(seed, "test sizes");
  std::vector<SampleSize> sizes(count);
  for (size_t i = 0; i < count; ++i) {
    sizes[i].tokens = 1 + static_cast<int32_t>(random.below(3 * i, static_cast<uint64_t>(longest)));
    sizes[i].images = static_cast<int32_t>(random.below(3 * i + 1, 3));
    sizes[i].targets = sizes[i].tokens / 2;
  }
  return sizes;
}

}  // namespace mm::data::test
