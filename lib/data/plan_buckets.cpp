#include "lib/data/plan_buckets.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/data/packing.h"
#include "lib/data/shuffle.h"
#include "lib/data/step_balance.h"

namespace mm::data {
namespace {

void check(std::span<const uint32_t> bucket_of, size_t buckets, const BucketOptions& options) {
  if (options.batch <= 0 || options.batches_per_step <= 0) {
    throw UsageError("batch of {} pictures, {} batches a step; both must be at least 1",
                     options.batch, options.batches_per_step);
  }
  for (size_t row = 0; row < bucket_of.size(); ++row) {
    if (bucket_of[row] >= buckets)
      throw DataError("sample {} is in bucket {} of {}", row, bucket_of[row], buckets);
  }
}

struct Batches {
  PackList list;
  std::vector<PackLoad> loads;
  std::vector<uint32_t> dropped;
};

/// Rows of each bucket in the order of `order`, cut into batches.
Batches cut(std::span<const uint32_t> bucket_of, std::span<const double> work_of,
            const BucketOptions& options, std::span<const uint32_t> order) {
  std::vector<std::vector<uint32_t>> rows(work_of.size());
  for (const uint32_t row : order) rows[bucket_of[row]].push_back(row);
  const auto batch = static_cast<size_t>(options.batch);
  Batches batches;
  for (size_t b = 0; b < rows.size(); ++b) {
    for (size_t i = 0; i < rows[b].size(); i += batch) {
      const auto part = std::span(rows[b]).subspan(i, std::min(batch, rows[b].size() - i));
      if (options.drop_short && part.size() < batch) {
        batches.dropped.insert(batches.dropped.end(), part.begin(), part.end());
        continue;
      }
      batches.list.add(part);
      batches.loads.push_back(
          {work_of[b] * static_cast<double>(part.size()), static_cast<int64_t>(part.size())});
    }
  }
  std::sort(batches.dropped.begin(), batches.dropped.end());
  return batches;
}

}  // namespace

PlanTable plan_buckets(std::span<const uint32_t> bucket_of, std::span<const double> work_of,
                       const BucketOptions& options, uint64_t epoch) {
  check(bucket_of, work_of.size(), options);
  const Philox random = Philox(options.seed, "bucket order").child(epoch);
  std::vector<uint32_t> order(bucket_of.size());
  std::iota(order.begin(), order.end(), 0u);
  shuffle(std::span(order), random.child("samples"));
  Batches batches = cut(bucket_of, work_of, options, order);
  if (batches.list.packs() == 0) {
    throw DataError(
        "{} pictures in {} buckets give no full batch of {}, so an epoch would have no step; make "
        "the batch smaller or keep short batches",
        bucket_of.size(), work_of.size(), options.batch);
  }
  const StepOrder steps =
      group_steps(batches.loads, options.batches_per_step, random.child("steps"));
  return arrange_steps(batches.list, steps, std::move(batches.dropped));
}

}  // namespace mm::data
