#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "lib/data/bucket_steps.h"
#include "lib/data/epoch_plan.h"

namespace mm::data::test {

inline SampleSize picture(BucketShape shape, int32_t tokens = 5) {
  return {.tokens = tokens, .images = 1, .targets = 1, .bucket = shape};
}

/// So many pictures of each shape, bucket after bucket.
inline std::vector<SampleSize> pictures_of(const std::vector<BucketCount>& counts) {
  std::vector<SampleSize> sizes;
  for (const BucketCount& count : counts)
    sizes.insert(sizes.end(), count.pictures, picture(count.shape));
  return sizes;
}

/// 13, 7 and 1 pictures in three buckets of 1,032,192 pixels (C22, C24).
inline std::vector<BucketCount> three_buckets() {
  return {{{896, 1152}, 13}, {{1152, 896}, 7}, {{768, 1344}, 1}};
}

inline int64_t pixels_of(const PlanView& plan, std::span<const SampleSize> sizes, uint64_t p) {
  return planned_pack(sizes, plan, p).pixels();
}

}  // namespace mm::data::test
