#include "lib/data/bucket_levels.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace mm::data {
namespace {

class LevelMaker {
 public:
  LevelMaker(std::span<const BucketCount> buckets, std::span<const uint32_t> kin,
             std::vector<uint32_t>& batch)
      : buckets_(buckets), batch_(batch), open_(kin.begin(), kin.end()) {}

  std::vector<BucketLevel> make() {
    std::vector<BucketLevel> levels;
    while (!open_.empty()) levels.push_back(take(best()));
    std::ranges::stable_sort(levels, {}, &BucketLevel::most);
    return levels;
  }

 private:
  int64_t pixels(uint32_t b) const { return buckets_[b].shape.pixels(); }

  /// Pictures of a batch of `b` at a level of `most` pixels; 0 if it does not get near enough.
  uint32_t batch_at(uint32_t b, int64_t most) const {
    const int64_t batch = std::min<int64_t>(batch_[b], most / pixels(b));
    const bool near =
        static_cast<double>(batch * pixels(b)) >= (1 - kLevelWidth) * static_cast<double>(most);
    return near ? static_cast<uint32_t>(batch) : 0;
  }

  /// Pixels a level may have: those of the full batches, and of batches up to a tenth smaller; of
  /// very large batches not each, but kMostCandidates a bucket.
  std::vector<int64_t> candidates() const {
    const bool search = open_.size() <= kMostSearched;
    std::vector<int64_t> all;
    for (const uint32_t b : open_) {
      const int64_t full = batch_[b], fewer = search ? full / 10 : 0;
      const int64_t stride = fewer / kMostCandidates + 1;
      for (int64_t less = 0; less <= fewer; less += stride)
        all.push_back((full - less) * pixels(b));
    }
    std::ranges::sort(all, std::greater<>());
    if (!search) all.resize(1);
    return all;
  }

  /// The level that most pixels can belong to; of equals the largest.
  int64_t best() const {
    int64_t best = 0;
    double best_weight = -1;
    for (const int64_t most : candidates()) {
      double weight = 0;
      for (const uint32_t b : open_) {
        if (batch_at(b, most) > 0)
          weight += static_cast<double>(buckets_[b].pictures) * static_cast<double>(pixels(b));
      }
      if (weight <= best_weight) continue;
      best_weight = weight;
      best = most;
    }
    return best;
  }

  BucketLevel take(int64_t most) {
    BucketLevel level{.least = most};
    std::vector<uint32_t> others;
    for (const uint32_t b : open_) {
      const uint32_t batch = batch_at(b, most);
      if (batch == 0) {
        others.push_back(b);
        continue;
      }
      batch_[b] = batch;
      level.buckets.push_back(b);
      level.most = std::max(level.most, batch * pixels(b));
      level.least = std::min(level.least, batch * pixels(b));
    }
    open_ = std::move(others);
    return level;
  }

  const std::span<const BucketCount> buckets_;
  std::vector<uint32_t>& batch_;
  std::vector<uint32_t> open_;  ///< in no level yet
};

}  // namespace

std::vector<std::vector<uint32_t>> bucket_kins(std::span<const BucketCount> buckets) {
  std::vector<uint32_t> order;
  for (uint32_t b = 0; b < buckets.size(); ++b)
    if (buckets[b].pictures > 0) order.push_back(b);
  const auto pixels = [&](uint32_t b) { return buckets[b].shape.pixels(); };
  std::ranges::stable_sort(order, {}, pixels);
  std::vector<std::vector<uint32_t>> kins;
  for (const uint32_t b : order) {
    if (kins.empty() ||
        static_cast<double>(pixels(b)) > kKin * static_cast<double>(pixels(kins.back().front())))
      kins.emplace_back();
    kins.back().push_back(b);
  }
  return kins;
}

std::vector<BucketLevel> bucket_levels(std::span<const BucketCount> buckets,
                                       std::span<const uint32_t> kin,
                                       std::vector<uint32_t>& batch) {
  return LevelMaker(buckets, kin, batch).make();
}

}  // namespace mm::data
