#include "lib/data/bucket_planner.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/data/shuffle.h"

namespace mm::data {
namespace {

void check_options(const PlanOptions& options) {
  if (options.batch_pixels <= 0) {
    throw UsageError("a batch has {} pixels; buckets need a budget of at least 1",
                     options.batch_pixels);
  }
  if (options.packs_per_step <= 0) {
    throw UsageError("{} batches per step; there must be at least 1", options.packs_per_step);
  }
}

/// Of each level its slots' buckets change places.
void mix_levels(std::vector<BucketSlot>& slots, const Philox& random) {
  std::vector<std::vector<uint32_t>> of_level;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const uint32_t level = slots[i].level;
    if (level == BucketSlot::kFixed) continue;
    if (level >= of_level.size()) of_level.resize(level + 1);
    of_level[level].push_back(i);
  }
  for (size_t level = 0; level < of_level.size(); ++level) {
    std::vector<BucketSlot> drawn;
    for (const uint32_t i : of_level[level]) drawn.push_back(slots[i]);
    shuffle(std::span(drawn), random.child(level));
    for (size_t i = 0; i < drawn.size(); ++i) slots[of_level[level][i]] = drawn[i];
  }
}

}  // namespace

BucketPlanner::BucketPlanner(std::span<const SampleSize> sizes, const PlanOptions& options)
    : seed_(options.seed) {
  check_options(options);
  if (sizes.size() >= UINT32_MAX)
    throw DataError("{} samples; a plan holds fewer than 2^32", sizes.size());
  std::map<BucketShape, uint64_t> counts;
  for (size_t row = 0; row < sizes.size(); ++row) {
    if (sizes[row].bucket.empty())
      throw DataError("sample {} is in no bucket; pack the data with --geometry buckets", row);
    ++counts[sizes[row].bucket];
  }
  std::map<BucketShape, uint32_t> place;
  for (const auto& [shape, pictures] : counts) {
    place[shape] = static_cast<uint32_t>(buckets_.size());
    buckets_.push_back({shape, pictures});
  }
  bucket_of_.reserve(sizes.size());
  for (const SampleSize& size : sizes) bucket_of_.push_back(place[size.bucket]);
  if (!sizes.empty()) steps_ = make_bucket_steps(buckets_, options);
}

std::vector<std::vector<uint32_t>> BucketPlanner::shuffled_rows(const Philox& random) const {
  std::vector<uint32_t> order(bucket_of_.size());
  std::iota(order.begin(), order.end(), 0u);
  shuffle(std::span(order), random);
  std::vector<std::vector<uint32_t>> rows(buckets_.size());
  for (size_t b = 0; b < rows.size(); ++b) rows[b].reserve(buckets_[b].pictures);
  for (const uint32_t row : order) rows[bucket_of_[row]].push_back(row);
  return rows;
}

PlanTable BucketPlanner::plan(uint64_t epoch) const {
  const Philox random = Philox(seed_, "bucket order").child(epoch);
  const auto rows = shuffled_rows(random.child("samples"));
  std::vector<BucketSlot> slots = steps_.slots;
  mix_levels(slots, random.child("levels"));
  std::vector<uint32_t> turn(steps_.steps());
  std::iota(turn.begin(), turn.end(), 0u);
  shuffle(std::span(turn), random.child("steps"));
  PlanTable table;
  table.rows.reserve(bucket_of_.size());
  std::vector<uint64_t> next(buckets_.size(), 0);
  for (const uint32_t step : turn) {
    for (size_t i = 0; i < steps_.per_step; ++i) {
      const BucketSlot& slot = slots[size_t{step} * steps_.per_step + i];
      const auto begin = rows[slot.bucket].begin() + static_cast<ptrdiff_t>(next[slot.bucket]);
      table.rows.insert(table.rows.end(), begin, begin + slot.real);
      next[slot.bucket] += slot.real;
      table.end_filled_pack(slot.fillers);
    }
    table.end_step();
  }
  for (size_t b = 0; b < rows.size(); ++b) {
    MM_CHECK(rows[b].size() - next[b] == steps_.left_out[b], "{} of bucket {} left", next[b], b);
    table.dropped.insert(table.dropped.end(), rows[b].begin() + static_cast<ptrdiff_t>(next[b]),
                         rows[b].end());
  }
  std::ranges::sort(table.dropped);
  return table;
}

}  // namespace mm::data
