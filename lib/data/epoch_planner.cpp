#include "lib/data/epoch_planner.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/base/thread_pool.h"
#include "lib/data/pack_bound.h"
#include "lib/data/pack_search.h"
#include "lib/data/packing.h"
#include "lib/data/shuffle.h"
#include "lib/data/step_balance.h"

namespace mm::data {
namespace {

void check_options(const PlanOptions& options) {
  if (options.sequence_length <= 0) {
    throw UsageError("sequence length is {}; it must be at least 1 token", options.sequence_length);
  }
  if (options.packs_per_step <= 0) {
    throw UsageError("packs per step is {}; it must be at least 1", options.packs_per_step);
  }
  if (options.max_images < 0) {
    throw UsageError("images per pack is {}; give 0 for no cap", options.max_images);
  }
  if (options.max_attention_pairs < 0) {
    throw UsageError("attention pairs per pack is {}; give 0 for no cap",
                     options.max_attention_pairs);
  }
  if (!(options.image_cost >= 0)) {
    throw UsageError("image cost is {} tokens; it must be 0 or more", options.image_cost);
  }
}

void check_no_buckets(std::span<const SampleSize> sizes) {
  const auto row = std::ranges::find_if(sizes, [](const auto& s) { return !s.bucket.empty(); });
  if (row == sizes.end()) return;
  throw UsageError(
      "sample {} is a picture of a bucket, {} x {}, and such a set is planned by pixels; give the "
      "packing \"buckets\" and the pixels of a batch",
      row - sizes.begin(), row->bucket.width, row->bucket.height);
}

bool fits(const SampleSize& size, const PlanOptions& o) {
  return size.tokens <= o.sequence_length && (o.max_images == 0 || size.images <= o.max_images) &&
         (o.max_attention_pairs == 0 || attention_pairs_of(size.tokens) <= o.max_attention_pairs);
}

[[noreturn]] void refuse(size_t row, const SampleSize& size, const PlanOptions& o) {
  if (size.tokens > o.sequence_length) {
    throw DataError(
        "sample {} has {} tokens, the sequence length is {}; raise it or pack the data"
        " set again with a smaller --max-length",
        row, size.tokens, o.sequence_length);
  }
  if (o.max_images > 0 && size.images > o.max_images) {
    throw DataError("sample {} has {} images, the cap is {} a pack; raise the cap", row,
                    size.images, o.max_images);
  }
  throw DataError("sample {} has {} attention pairs, the cap is {} a pack; raise the cap", row,
                  attention_pairs_of(size.tokens), o.max_attention_pairs);
}

/// Rows that no pack can hold; refuses them unless they may be dropped.
std::vector<uint32_t> oversized(std::span<const SampleSize> sizes, const PlanOptions& options) {
  if (sizes.size() >= LengthTypes::kNone)
    throw DataError("{} samples; a plan holds at most {}", sizes.size(), LengthTypes::kNone - 1);
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const SampleSize& size = sizes[i];
    if (size.tokens < 0 || size.images < 0 || size.targets < 0) {
      throw DataError("sample {} has a negative size ({} tokens, {} images, {} targets)", i,
                      size.tokens, size.images, size.targets);
    }
    if (fits(size, options)) continue;
    if (options.oversize == Oversize::kRefuse) refuse(i, size, options);
    rows.push_back(static_cast<uint32_t>(i));
  }
  return rows;
}

PackPatterns patterns_by(Packing packing, std::span<const LengthType> types,
                         const PackLimits& limits) {
  switch (packing) {
    case Packing::kGreedy:
      return pack_greedy(types, limits);
    case Packing::kBestFit:
      return pack_best_fit(types, limits);
    case Packing::kExact:
      return pack_exact(types, limits);
    case Packing::kSearch:
      return pack_search(types, limits);
    default:
      return {};
  }
}

/// Fewest packs; of equals the first named. The search, which takes longest, is left out where it
/// cannot win.
std::pair<Packing, PackPatterns> best_patterns(std::span<const LengthType> types,
                                               const PackLimits& limits) {
  constexpr std::array kQuick{Packing::kBestFit, Packing::kExact};
  std::array<PackPatterns, kQuick.size()> made;
  parallel_for(kQuick.size(), 0,
               [&](size_t i) { made[i] = patterns_by(kQuick[i], types, limits); });
  const size_t quick = made[1].packs() < made[0].packs() ? 1 : 0;
  std::pair best{kQuick[quick], std::move(made[quick])};
  if (best.second.packs() <= pack_bound(types, limits, false).packs) return best;
  constexpr std::array kRest{Packing::kSearch, Packing::kGreedy};
  parallel_for(kRest.size(), 0, [&](size_t i) { made[i] = patterns_by(kRest[i], types, limits); });
  for (size_t i = 0; i < kRest.size(); ++i) {
    if (made[i].packs() < best.second.packs()) best = {kRest[i], std::move(made[i])};
  }
  return best;
}

std::vector<uint32_t> shuffled_rows(size_t samples, std::span<const uint32_t> dropped,
                                    const Philox& random) {
  std::vector<uint32_t> order;
  order.reserve(samples - dropped.size());
  for (uint32_t row = 0, skip = 0; row < samples; ++row) {
    if (skip < dropped.size() && dropped[skip] == row)
      ++skip;
    else
      order.push_back(row);
  }
  shuffle(std::span(order), random);
  return order;
}

/// Puts samples into patterns: those of a type are taken in the order of `order`.
PackList fill_patterns(const LengthTypes& types, const PackPatterns& patterns,
                       std::span<const uint32_t> order) {
  std::vector<uint64_t> next(types.types.size() + 1, 0);
  for (size_t t = 0; t < types.types.size(); ++t) next[t + 1] = next[t] + types.types[t].count;
  std::vector<uint32_t> by_type(order.size());
  auto place = next;
  for (const uint32_t row : order) by_type[place[types.type_of[row]]++] = row;
  PackList packs;
  packs.rows.reserve(order.size());
  packs.begin.reserve(patterns.packs() + 1);
  for (size_t p = 0; p < patterns.size(); ++p) {
    for (uint64_t i = 0; i < patterns.times[p]; ++i) {
      for (const uint32_t type : patterns.pattern(p)) packs.rows.push_back(by_type[next[type]++]);
      packs.begin.push_back(packs.rows.size());
    }
  }
  MM_CHECK(packs.rows.size() == order.size(), "{} of {} samples packed", packs.rows.size(),
           order.size());
  return packs;
}

std::vector<PackLoad> loads_of(std::span<const SampleSize> sizes, const PackList& packs,
                               double image_cost) {
  std::vector<PackLoad> loads;
  loads.reserve(packs.packs());
  for (size_t p = 0; p < packs.packs(); ++p) {
    Pack sums;
    for (const uint32_t row : packs.pack(p)) add_size(sums, sizes[row]);
    loads.push_back({pack_cost(sums, image_cost), sums.images});
  }
  return loads;
}

}  // namespace

EpochPlanner::EpochPlanner(std::span<const SampleSize> sizes, const PlanOptions& options)
    : sizes_(sizes), options_(options), packing_(options.packing) {
  if (packing_ == Packing::kBuckets) {
    buckets_.emplace(sizes, options);
    return;
  }
  check_options(options);
  check_no_buckets(sizes);
  dropped_ = oversized(sizes, options);
  if (packing_ == Packing::kShuffled || packing_ == Packing::kNone) return;
  types_ = length_types(sizes, dropped_);
  if (packing_ == Packing::kTight) {
    std::tie(packing_, patterns_) = best_patterns(types_.types, limits_of(options));
  } else {
    patterns_ = patterns_by(packing_, types_.types, limits_of(options));
  }
}

PlanTable EpochPlanner::plan(uint64_t epoch) const {
  if (buckets_) return buckets_->plan(epoch);
  const Philox random = Philox(options_.seed, "epoch order").child(epoch);
  const auto order = shuffled_rows(sizes_.size(), dropped_, random.child("samples"));
  PackList packs;
  if (packing_ == Packing::kShuffled) {
    packs = pack_in_order(sizes_, order, limits_of(options_));
  } else if (packing_ == Packing::kNone) {
    for (const uint32_t row : order) packs.add(std::span(&row, 1));
  } else {
    packs = fill_patterns(types_, patterns_, order);
  }
  const auto loads = loads_of(sizes_, packs, options_.image_cost);
  const bool drawn = packing_ == Packing::kShuffled || packing_ == Packing::kNone;
  const auto steps = drawn ? balance_steps(loads, options_.packs_per_step, random.child("steps"))
                           : group_steps(loads, options_.packs_per_step, random.child("steps"));
  return arrange_steps(packs, steps, dropped_);
}

}  // namespace mm::data
