#include "lib/data/bucket_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/random.h"
#include "tests/data/bucket_sets.h"

using namespace mm::data;

namespace {

PlanOptions options_of(int64_t batch_pixels, int32_t per_step) {
  return {.packs_per_step = per_step, .packing = Packing::kBuckets, .batch_pixels = batch_pixels};
}

/// Max / mean of the pixels of a step's slots.
double balance_of(const BucketSteps& steps, std::span<const BucketCount> buckets, uint64_t s) {
  double most = 0, sum = 0;
  for (uint64_t i = s * steps.per_step; i < (s + 1) * steps.per_step; ++i) {
    const BucketSlot& slot = steps.slots[i];
    const auto pixels = static_cast<double>(slot.pictures() * buckets[slot.bucket].shape.pixels());
    most = std::max(most, pixels);
    sum += pixels;
  }
  return most * steps.per_step / sum;
}

struct Totals {
  std::vector<uint64_t> real;
  uint64_t fillers = 0;
};

/// Checks what every layout of steps must keep.
Totals check_steps(const BucketSteps& steps, std::span<const BucketCount> buckets,
                   const PlanOptions& options) {
  Totals totals{std::vector<uint64_t>(buckets.size(), 0)};
  REQUIRE(steps.slots.size() % steps.per_step == 0);
  double worst = 1;
  for (uint64_t s = 0; s < steps.steps(); ++s) {
    worst = std::max(worst, balance_of(steps, buckets, s));
    CHECK(steps.slots[s * steps.per_step].real > 0);
  }
  for (const BucketSlot& slot : steps.slots) {
    totals.real[slot.bucket] += slot.real;
    totals.fillers += slot.fillers;
    const int64_t budget = std::max(options.batch_pixels, buckets[slot.bucket].shape.pixels());
    CHECK(slot.pictures() > 0);
    CHECK(slot.pictures() * buckets[slot.bucket].shape.pixels() <= budget);
  }
  CHECK(worst <= kPixelBalance);
  for (size_t b = 0; b < buckets.size(); ++b)
    CHECK(totals.real[b] + steps.left_out[b] == buckets[b].pictures);
  return totals;
}

std::vector<BucketCount> random_buckets(const mm::Philox& random) {
  std::set<BucketShape> shapes;
  const uint64_t count = 1 + random.below(0, 30);
  for (uint64_t i = 1; i <= count; ++i) {
    shapes.insert({static_cast<uint16_t>(16 * (1 + random.below(3 * i, 32))),
                   static_cast<uint16_t>(16 * (1 + random.below(3 * i + 1, 32)))});
  }
  std::vector<BucketCount> buckets;
  for (const BucketShape& shape : shapes)
    buckets.push_back({shape, random.below(1000 + buckets.size(), 300)});
  buckets.front().pictures += 1;
  return buckets;
}

}  // namespace

TEST_CASE("make_bucket_steps: random buckets, budgets and slots keep every picture in balance") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const mm::Philox random = mm::Philox(7, "buckets").child(seed);
    const std::vector<BucketCount> buckets = random_buckets(random);
    for (const int32_t per_step : {1, 2, 3, 4, 5, 6, 7, 8, 12, 64}) {
      const PlanOptions options =
          options_of(static_cast<int64_t>(1 + random.below(9, 1 << 20)), per_step);
      const Totals totals = check_steps(make_bucket_steps(buckets, options), buckets, options);
      if (per_step == 1) CHECK(totals.fillers == 0);
    }
  }
}

TEST_CASE("make_bucket_steps: batches beyond all pictures are planned at once") {
  std::vector<BucketCount> many;
  for (uint16_t i = 0; i < 40; ++i)
    many.push_back(
        {{static_cast<uint16_t>(16 * (10 + i)), static_cast<uint16_t>(16 * (50 - i))}, 25});
  const std::vector<BucketCount> one = {{{28, 28}, 1000}};
  for (const int32_t per_step : {1, 8}) {
    const PlanOptions options = options_of(int64_t{1} << 40, per_step);
    check_steps(make_bucket_steps(one, options), one, options);
    check_steps(make_bucket_steps(many, options), many, options);
  }
}

TEST_CASE("make_bucket_steps: dropped leftovers are full batches' remainders, without fillers") {
  const std::vector<BucketCount> buckets = {{{32, 32}, 103}, {{16, 64}, 50}, {{64, 64}, 41}};
  PlanOptions options = options_of(4 * 32 * 32, 2);
  options.leftovers = Leftovers::kDrop;
  const BucketSteps steps = make_bucket_steps(buckets, options);
  CHECK(check_steps(steps, buckets, options).fillers == 0);
  // 25 and 12 batches of one level: 37, so one waits; 41 of one picture: one waits.
  CHECK(steps.left_out[0] + steps.left_out[1] == 3 + 2 + 4);
  CHECK(steps.left_out[2] == 1);
}

TEST_CASE("make_bucket_steps: batches of several buckets agree where counts can make them") {
  // 64 of 256 x 256; 61 of 288 x 240 would have 4,216,320 pixels, 60 have 4,147,200.
  const std::vector<BucketCount> buckets = {{{256, 256}, 6400}, {{288, 240}, 6400}};
  const PlanOptions options = options_of(64 * 256 * 256, 8);
  const BucketSteps steps = make_bucket_steps(buckets, options);
  check_steps(steps, buckets, options);
  std::set<uint32_t> met;
  for (size_t i = 0; i < 8 * 20; ++i) met.insert(steps.slots[i].level);
  CHECK(met.size() == 1);
}
