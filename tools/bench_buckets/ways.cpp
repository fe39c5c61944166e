#include "tools/bench_buckets/ways.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/data/bucket_baselines.h"
#include "lib/data/bucket_planner.h"

namespace mm::bench {
namespace {

using data::BucketShape;
using data::ShuffledShapes;
using Steps = std::vector<std::vector<RankBatch>>;

Steps planned(std::span<const data::SampleSize> sizes, const data::PlanOptions& options,
              int ranks) {
  const data::BucketPlanner planner(sizes, options);
  const data::PlanTable plan = planner.plan(0);
  Steps steps;
  for (uint64_t s = 0; s < plan.view().steps(); ++s) {
    const std::vector<data::Pack> packs = data::packs_of_step(sizes, plan.view(), s);
    const auto dealt = data::deal_step(packs, ranks);
    std::vector<RankBatch> step;
    for (const auto& mine : dealt) {
      step.emplace_back();
      // One batch a rank: packs_per_step is the number of ranks.
      for (const uint32_t pack : mine) step.back() = {packs[pack].bucket, packs[pack].pictures()};
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

uint16_t square_side(int64_t area) {
  return static_cast<uint16_t>(std::lround(std::sqrt(static_cast<double>(area)) / 16) * 16);
}

/// Batches of `count` pictures each, in order; `shape_of` (begin, count) gives a batch's shape.
template <typename F>
Steps fixed_batches(uint64_t pictures, uint64_t count, int ranks, F&& shape_of) {
  Steps steps;
  for (uint64_t next = 0; next < pictures;) {
    std::vector<RankBatch> step;
    for (int rank = 0; rank < ranks; ++rank, next += count)
      step.push_back({shape_of(next), static_cast<int64_t>(count)});
    steps.push_back(std::move(step));
  }
  return steps;
}

BucketShape largest_sides(const ShuffledShapes& epoch, uint64_t begin) {
  BucketShape most;
  for (uint64_t i = begin; i < begin + epoch.fixed_batch(); ++i) {
    const BucketShape& shape = epoch.shapes[i % epoch.shapes.size()];
    most.height = std::max(most.height, shape.height);
    most.width = std::max(most.width, shape.width);
  }
  return most;
}

std::vector<RankBatch> sampled_by_rank(const ShuffledShapes& epoch, uint64_t rank, uint64_t ranks) {
  std::map<BucketShape, int64_t> open;
  std::vector<RankBatch> batches;
  const auto full = static_cast<int64_t>(epoch.fixed_batch());
  for (uint64_t i = rank; i < epoch.shapes.size(); i += ranks) {
    int64_t& count = open[epoch.shapes[i]];
    if (++count < full) continue;
    batches.push_back({epoch.shapes[i], full});
    count = 0;
  }
  for (const auto& [shape, count] : open) {
    if (count > 0) batches.push_back({shape, count});
  }
  return batches;
}

Steps sampled(const ShuffledShapes& epoch, int ranks) {
  Steps steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto batches =
        sampled_by_rank(epoch, static_cast<uint64_t>(rank), static_cast<uint64_t>(ranks));
    if (steps.size() < batches.size())
      steps.resize(batches.size(), std::vector<RankBatch>(static_cast<size_t>(ranks)));
    for (size_t s = 0; s < batches.size(); ++s) steps[s][static_cast<size_t>(rank)] = batches[s];
  }
  return steps;
}

}  // namespace

std::vector<Way> ways_of(std::span<const data::SampleSize> sizes, const data::PlanOptions& options,
                         int ranks) {
  const ShuffledShapes epoch = data::shuffle_shapes(sizes, options, 0);
  const uint16_t side = square_side(epoch.largest);
  const uint64_t count = epoch.fixed_batch();
  return {{"buckets, dynamic batches", planned(sizes, options, ranks)},
          {"one square", fixed_batches(sizes.size(), count, ranks,
                                       [&](uint64_t) {
                                         return BucketShape{side, side};
                                       })},
          {"random, padded", fixed_batches(sizes.size(), count, ranks,
                                           [&](uint64_t i) { return largest_sides(epoch, i); })},
          {"rank's own buckets", sampled(epoch, ranks)}};
}

}  // namespace mm::bench
