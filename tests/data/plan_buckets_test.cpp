#include "lib/data/plan_buckets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/step_balance.h"

using namespace mm::data;

namespace {

/// 13, 7 and 1 pictures in three buckets.
std::vector<uint32_t> three_buckets() {
  std::vector<uint32_t> buckets(13, 0);
  buckets.insert(buckets.end(), 7, 1);
  buckets.push_back(2);
  return buckets;
}

const std::vector<double> kPixels = {1024.0 * 1024, 1152.0 * 896, 832.0 * 1216};

/// Sizes of the batches by bucket, largest first; checks that a batch has one bucket.
std::map<uint32_t, std::multiset<size_t, std::greater<>>> batch_sizes(const PlanTable& plan) {
  const auto buckets = three_buckets();
  std::map<uint32_t, std::multiset<size_t, std::greater<>>> sizes;
  for (uint64_t p = 0; p < plan.view().packs(); ++p) {
    const auto batch = plan.view().pack(p);
    for (const uint32_t row : batch) CHECK(buckets[row] == buckets[batch[0]]);
    sizes[buckets[batch[0]]].insert(batch.size());
  }
  return sizes;
}

}  // namespace

TEST_CASE("C22: no bucket is lost; short batches are kept, every picture once an epoch") {
  const BucketOptions options{.seed = 3, .batch = 4};
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const PlanTable plan = plan_buckets(three_buckets(), kPixels, options, epoch);
    const auto sizes = batch_sizes(plan);
    CHECK(sizes.at(0) == std::multiset<size_t, std::greater<>>{4, 4, 4, 1});
    CHECK(sizes.at(1) == std::multiset<size_t, std::greater<>>{4, 3});
    CHECK(sizes.at(2) == std::multiset<size_t, std::greater<>>{1});
    CHECK(std::set<uint32_t>(plan.rows.begin(), plan.rows.end()).size() == 21);
    CHECK(plan.dropped.empty());
  }
}

TEST_CASE("C22: short batches are dropped on request, their pictures named") {
  const PlanTable plan =
      plan_buckets(three_buckets(), kPixels, {.seed = 3, .batch = 4, .drop_short = true}, 0);
  const auto sizes = batch_sizes(plan);
  CHECK(sizes.at(0) == std::multiset<size_t, std::greater<>>{4, 4, 4});
  CHECK(sizes.at(1) == std::multiset<size_t, std::greater<>>{4});
  CHECK(!sizes.contains(2));
  CHECK(plan.dropped.size() == 5);
  CHECK(plan.dropped.back() == 20);
}

TEST_CASE("C22: an epoch without a full batch is refused") {
  CHECK_THROWS_AS(plan_buckets(three_buckets(), kPixels, {.batch = 14, .drop_short = true}, 0),
                  mm::DataError);
  CHECK_THROWS_AS(plan_buckets(three_buckets(), kPixels, {.batch = 0}, 0), mm::UsageError);
  CHECK_THROWS_AS(plan_buckets(std::vector<uint32_t>{3}, kPixels, {.batch = 1}, 0), mm::DataError);
}

TEST_CASE("C24: all ranks run equal steps, each picture counts once, filler is counted") {
  for (const int ranks : {2, 4}) {
    const PlanTable plan = plan_buckets(three_buckets(), kPixels,
                                        {.seed = 1, .batch = 4, .batches_per_step = ranks}, 0);
    const PlanView view = plan.view();
    CHECK(view.steps() == (ranks == 2 ? 4 : 2));
    std::multiset<uint32_t> seen;
    uint64_t empty = 0;
    for (uint64_t s = 0; s < view.steps(); ++s) {
      std::vector<double> work;
      for (uint64_t p = view.step_begin[s]; p < view.step_begin[s + 1]; ++p) {
        const auto batch = view.pack(p);
        seen.insert(batch.begin(), batch.end());
        work.push_back(kPixels[three_buckets()[batch[0]]] * static_cast<double>(batch.size()));
      }
      // Every rank has one micro-batch; those without a batch are empty.
      CHECK(micro_batches_per_rank(work.size(), ranks) == 1);
      empty += static_cast<uint64_t>(ranks) - work.size();
      const auto [least, most] = std::minmax_element(work.begin(), work.end());
      CHECK(*most - *least < 4 * kPixels[0]);
    }
    CHECK(empty == 1);
    CHECK(seen.size() == 21);
    CHECK(std::set<uint32_t>(seen.begin(), seen.end()).size() == 21);
  }
}
