#include "lib/data/bucket_baselines.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "lib/data/shuffle.h"

namespace mm::data {
namespace {

/// What the ranks of the steps have, as it comes.
class EpochMeter {
 public:
  EpochMeter(double pixels, int ranks) : ideal_(pixels / ranks), ranks_(ranks) {}

  void add(const std::vector<double>& per_rank) {
    ratios_.push_back(max_over_mean(per_rank));
    time_ += *std::ranges::max_element(per_rank);
  }
  EpochCost cost(uint64_t repeated) {
    EpochCost cost{.steps = ratios_.size(), .repeated = repeated, .time = time_ / ideal_};
    cost.pixels = summed_up(std::move(ratios_));
    return cost;
  }
  int ranks() const { return ranks_; }

 private:
  const double ideal_;
  const int ranks_;
  double time_ = 0;
  std::vector<double> ratios_;
};

/// Pixels of pictures [begin, begin + count), each padded to the largest sides among them; the
/// epoch begins again at its end.
double padded_batch(const ShuffledShapes& epoch, uint64_t begin, uint64_t count) {
  BucketShape most;
  for (uint64_t i = begin; i < begin + count; ++i) {
    const BucketShape& shape = epoch.shapes[i % epoch.shapes.size()];
    most.height = std::max(most.height, shape.height);
    most.width = std::max(most.width, shape.width);
  }
  return static_cast<double>(most.pixels()) * static_cast<double>(count);
}

EpochCost padded_epoch(const ShuffledShapes& epoch, int ranks, int batches) {
  EpochMeter meter(epoch.pixels, ranks);
  const uint64_t count = epoch.fixed_batch();
  uint64_t next = 0;
  std::vector<double> per_rank(static_cast<size_t>(ranks));
  while (next < epoch.shapes.size()) {
    for (double& rank : per_rank) {
      rank = 0;
      for (int b = 0; b < batches; ++b, next += count) rank += padded_batch(epoch, next, count);
    }
    meter.add(per_rank);
  }
  return meter.cost(next - epoch.shapes.size());
}

/// Batches, by pixels, that one rank's bucket sampler gives.
std::vector<double> sampled_batches(const ShuffledShapes& epoch, uint64_t rank, uint64_t ranks,
                                    uint64_t each) {
  std::map<BucketShape, uint64_t> open;
  std::vector<double> batches;
  const uint64_t full = epoch.fixed_batch();
  for (uint64_t i = 0; i < each; ++i) {
    const BucketShape& shape = epoch.shapes[(rank + i * ranks) % epoch.shapes.size()];
    uint64_t& count = open[shape];
    if (++count < full) continue;
    batches.push_back(static_cast<double>(shape.pixels()) * static_cast<double>(full));
    count = 0;
  }
  for (const auto& [shape, count] : open) {
    if (count > 0)
      batches.push_back(static_cast<double>(shape.pixels()) * static_cast<double>(count));
  }
  return batches;
}

EpochCost sampled_epoch(const ShuffledShapes& epoch, int ranks, int batches) {
  EpochMeter meter(epoch.pixels, ranks);
  const auto world = static_cast<uint64_t>(ranks);
  const uint64_t each = (epoch.shapes.size() + world - 1) / world;
  std::vector<std::vector<double>> all;
  size_t most = 0;
  for (uint64_t rank = 0; rank < world; ++rank) {
    all.push_back(sampled_batches(epoch, rank, world, each));
    most = std::max(most, all.back().size());
  }
  std::vector<double> per_rank(static_cast<size_t>(ranks));
  const auto a_step = static_cast<size_t>(batches);
  for (size_t begin = 0; begin < most; begin += a_step) {
    for (size_t rank = 0; rank < all.size(); ++rank) {
      per_rank[rank] = 0;
      for (size_t i = begin; i < std::min(begin + a_step, all[rank].size()); ++i)
        per_rank[rank] += all[rank][i];
    }
    meter.add(per_rank);
  }
  return meter.cost(each * world - epoch.shapes.size());
}

EpochCost square_epoch(const ShuffledShapes& epoch, int ranks, int batches) {
  const uint64_t a_step = epoch.fixed_batch() * static_cast<uint64_t>(ranks * batches);
  const uint64_t steps = (epoch.shapes.size() + a_step - 1) / a_step;
  const double step =
      static_cast<double>(epoch.largest) * static_cast<double>(epoch.fixed_batch()) * batches;
  return {.steps = steps,
          .repeated = steps * a_step - epoch.shapes.size(),
          .time = step * static_cast<double>(steps) * ranks / epoch.pixels};
}

}  // namespace

uint64_t ShuffledShapes::fixed_batch() const {
  return static_cast<uint64_t>(std::max<int64_t>(1, batch_pixels / largest));
}

ShuffledShapes shuffle_shapes(std::span<const SampleSize> sizes, const PlanOptions& options,
                              uint64_t epoch) {
  ShuffledShapes shuffled{.batch_pixels = options.batch_pixels};
  shuffled.shapes.reserve(sizes.size());
  for (const SampleSize& size : sizes) {
    shuffled.shapes.push_back(size.bucket);
    shuffled.largest = std::max(shuffled.largest, size.bucket.pixels());
    shuffled.pixels += static_cast<double>(size.bucket.pixels());
  }
  shuffle(std::span(shuffled.shapes), Philox(options.seed, "other ways").child(epoch));
  return shuffled;
}

OtherWays other_ways(const ShuffledShapes& epoch, int ranks, int batches) {
  return {padded_epoch(epoch, ranks, batches), sampled_epoch(epoch, ranks, batches),
          square_epoch(epoch, ranks, batches)};
}

}  // namespace mm::data
