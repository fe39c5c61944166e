#include "lib/data/bucket_dropped.h"

#include <fmt/format.h>

#include <map>

#include "lib/data/bucket_planner.h"

namespace mm::data {

std::vector<DroppedPicture> dropped_pictures(std::span<const SampleSize> sizes,
                                             const PlanView& plan, const PlanOptions& options) {
  std::vector<DroppedPicture> dropped;
  if (plan.dropped.empty()) return dropped;
  const BucketPlanner planner(sizes, options);
  // What a bucket has beyond full batches is short; the rest are full batches without a step.
  std::map<BucketShape, std::pair<uint64_t, uint32_t>> short_of;
  for (size_t b = 0; b < planner.buckets().size(); ++b) {
    const uint32_t batch = planner.steps().batch[b];
    short_of[planner.buckets()[b].shape] = {planner.buckets()[b].pictures % batch, batch};
  }
  for (const uint32_t row : plan.dropped) {
    auto& [left, batch] = short_of.at(sizes[row].bucket);
    std::string reason =
        fmt::format("left over, as {} batches make a step", options.packs_per_step);
    if (left > 0) {
      reason = fmt::format("left over, as {} pictures make a batch", batch);
      --left;
    }
    dropped.push_back({row, sizes[row].bucket, std::move(reason)});
  }
  return dropped;
}

}  // namespace mm::data
