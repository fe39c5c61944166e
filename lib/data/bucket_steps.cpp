#include "lib/data/bucket_steps.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/bucket_leftovers.h"
#include "lib/data/bucket_levels.h"

namespace mm::data {
namespace {

/// Sum of what a step's slots lack, a slot, at most: below 1 - 1 / kPixelBalance for rounding.
constexpr double kShortage = 0.0099;
/// Full batches of smaller levels that wait for a step.
struct Waiting {
  uint32_t bucket = 0;
  uint64_t batches = 0;
  int64_t pixels = 0;  ///< of a batch
};

class StepMaker {
 public:
  StepMaker(std::span<const BucketCount> buckets, const PlanOptions& options)
      : buckets_(buckets), keep_(options.leftovers == Leftovers::kKeep) {
    steps_.per_step = static_cast<uint32_t>(options.packs_per_step);
    for (const BucketCount& b : buckets) {
      left_.push_back(b.pictures);
      steps_.batch.push_back(
          static_cast<uint32_t>(pictures_in_budget(b.shape, options.batch_pixels)));
    }
    steps_.left_out.assign(buckets.size(), 0);
  }

  BucketSteps make() {
    for (const std::vector<uint32_t>& kin : bucket_kins(buckets_)) {
      waiting_.clear();
      for (const BucketLevel& level : bucket_levels(buckets_, kin, steps_.batch)) fill_level(level);
      finish(kin);
    }
    return std::move(steps_);
  }

 private:
  int64_t pixels(uint32_t b) const { return buckets_[b].shape.pixels(); }
  int64_t batch_pixels(uint32_t b) const { return pixels(b) * steps_.batch[b]; }

  /// The full steps of a level, with guests: waiting batches of smaller ones.
  void fill_level(const BucketLevel& level) {
    uint64_t own = 0;
    for (const uint32_t b : level.buckets) own += left_[b] / steps_.batch[b];
    const double width = 1 - static_cast<double>(level.least) / static_cast<double>(level.most);
    const double spare = std::max(0.0, kShortage - width) * steps_.per_step;
    uint64_t guests = 0;
    for (const Waiting& w : waiting_) guests += w.batches;
    std::vector<std::vector<BucketSlot>> invited;
    uint64_t steps = (own + guests) / steps_.per_step;
    for (; steps > own / steps_.per_step; --steps) {
      uint64_t seated = 0;
      invited = seat(level, steps, spare);
      for (const auto& at : invited) seated += at.size();
      if (own + seated >= steps * steps_.per_step) break;
    }
    if (steps == own / steps_.per_step) invited = seat(level, steps, spare);
    put_steps(level, invited);
    wait(level);
  }

  /// Guests of each of `steps` steps, the largest batches first, in turn.
  std::vector<std::vector<BucketSlot>> seat(const BucketLevel& level, uint64_t steps,
                                            double spare) const {
    std::vector<std::vector<BucketSlot>> at(steps);
    std::vector<double> lacking(steps, 0);
    if (steps == 0) return at;
    uint64_t next = 0;
    for (const Waiting& w : waiting_) {
      const double lack = 1 - static_cast<double>(w.pixels) / static_cast<double>(level.most);
      for (uint64_t i = 0; i < w.batches; ++i, next = (next + 1) % steps) {
        if (lacking[next] + lack > spare || at[next].size() + 1 >= steps_.per_step) return at;
        lacking[next] += lack;
        at[next].push_back({w.bucket, steps_.batch[w.bucket], 0});
      }
    }
    return at;
  }

  /// Appends the steps: guests, then own batches, from the buckets with most of them.
  void put_steps(const BucketLevel& level, std::span<const std::vector<BucketSlot>> invited) {
    uint64_t needed = invited.size() * steps_.per_step;
    for (const auto& at : invited) {
      needed -= at.size();
      for (const BucketSlot& slot : at) use(slot.bucket);
    }
    std::vector<BucketSlot> own = draw(level, needed);
    size_t next = 0;
    for (const auto& at : invited) {
      // An own batch first: a step's first slot is of its level.
      const size_t count = steps_.per_step - at.size();
      steps_.slots.insert(steps_.slots.end(), own.begin() + static_cast<ptrdiff_t>(next),
                          own.begin() + static_cast<ptrdiff_t>(next + count));
      steps_.slots.insert(steps_.slots.end(), at.begin(), at.end());
      next += count;
    }
  }

  void use(uint32_t bucket) {
    left_[bucket] -= steps_.batch[bucket];
    const auto w = std::ranges::find(waiting_, bucket, &Waiting::bucket);
    if (w != waiting_.end()) --w->batches;
  }

  /// `count` full batches of the level's buckets; what stays over comes from those with most.
  std::vector<BucketSlot> draw(const BucketLevel& level, uint64_t count) {
    std::vector<std::pair<uint64_t, uint32_t>> have;
    uint64_t over = 0;
    for (const uint32_t b : level.buckets) {
      have.emplace_back(left_[b] / steps_.batch[b], b);
      over += have.back().first;
    }
    over -= count;
    std::ranges::stable_sort(have, std::greater<>(), [](const auto& h) { return h.first; });
    for (auto& [batches, b] : have) {
      const uint64_t spared = std::min(over, batches);
      batches -= spared;
      over -= spared;
    }
    std::vector<BucketSlot> slots;
    slots.reserve(count);
    for (const auto& [batches, b] : have) {
      left_[b] -= batches * steps_.batch[b];
      slots.insert(slots.end(), batches, {b, steps_.batch[b], 0, level_});
    }
    ++level_;
    return slots;
  }

  void wait(const BucketLevel& level) {
    for (const uint32_t b : level.buckets) {
      const uint64_t batches = left_[b] / steps_.batch[b];
      if (batches > 0) waiting_.push_back({b, batches, batch_pixels(b)});
    }
    std::erase_if(waiting_, [](const Waiting& w) { return w.batches == 0; });
    std::ranges::stable_sort(waiting_, std::greater<>(), &Waiting::pixels);
  }

  void finish(std::span<const uint32_t> kin) {
    std::vector<BucketLeft> left;
    for (const uint32_t b : kin) {
      if (left_[b] == 0) continue;
      if (!keep_) {
        steps_.left_out[b] = left_[b];
      } else if (steps_.per_step == 1) {
        steps_.slots.push_back({b, static_cast<uint32_t>(left_[b]), 0});
      } else {
        left.push_back({b, left_[b], pixels(b), steps_.batch[b]});
      }
    }
    if (!left.empty()) pack_leftovers(left, steps_.per_step, steps_.slots);
  }

  const std::span<const BucketCount> buckets_;
  const bool keep_;
  std::vector<uint64_t> left_;  ///< [buckets] pictures in no slot yet
  std::vector<Waiting> waiting_;
  uint32_t level_ = 0;
  BucketSteps steps_;
};

}  // namespace

int64_t pictures_in_budget(BucketShape shape, int64_t batch_pixels) {
  return std::clamp<int64_t>(batch_pixels / shape.pixels(), 1, INT32_MAX);
}

BucketSteps make_bucket_steps(std::span<const BucketCount> buckets, const PlanOptions& options) {
  BucketSteps steps = StepMaker(buckets, options).make();
  if (steps.slots.empty()) {
    uint64_t pictures = 0;
    for (const BucketCount& b : buckets) pictures += b.pictures;
    throw DataError(
        "{} pictures in {} buckets give no full step of {} batches of up to {} pixels, so an epoch "
        "would have no step; make the batch or the step smaller, or keep leftovers",
        pictures, buckets.size(), options.packs_per_step, options.batch_pixels);
  }
  return steps;
}

}  // namespace mm::data
