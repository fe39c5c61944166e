#include "lib/data/epoch_plan.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/data/packing.h"
#include "lib/data/shuffle.h"
#include "lib/data/step_balance.h"

namespace mm::data {
namespace {

/// Samples packed together. Larger packs tighter; smaller mixes better and plans faster.
constexpr size_t kWindowSamples = 8192;

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
}

void check_sizes(std::span<const SampleSize> sizes, const PlanOptions& options) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const SampleSize& size = sizes[i];
    if (size.tokens < 0 || size.images < 0 || size.targets < 0) {
      throw DataError("sample {} has a negative size ({} tokens, {} images, {} targets)", i,
                      size.tokens, size.images, size.targets);
    }
    if (size.tokens > options.sequence_length) {
      throw DataError(
          "sample {} has {} tokens, the sequence length is {}; raise it or pack the data"
          " set again with a smaller --max-length",
          i, size.tokens, options.sequence_length);
    }
    if (options.max_images > 0 && size.images > options.max_images) {
      throw DataError("sample {} has {} images, the cap is {} a pack; raise the cap", i,
                      size.images, options.max_images);
    }
  }
}

/// Moves the rows of packs that are less than 95 % full to `carry`, for the next window to place
/// better.
std::vector<uint32_t> take_loose(std::vector<Pack>& packs, int64_t sequence_length) {
  std::vector<uint32_t> carry;
  std::erase_if(packs, [&](const Pack& pack) {
    if (pack.tokens * 20 >= sequence_length * 19) return false;
    carry.insert(carry.end(), pack.samples.begin(), pack.samples.end());
    return true;
  });
  return carry;
}

std::vector<Pack> pack_windows(std::span<const SampleSize> sizes, std::span<const uint32_t> order,
                               const PlanOptions& options, const Philox& random) {
  std::vector<Pack> all;
  std::vector<uint32_t> carry;
  for (size_t begin = 0; begin < order.size();) {
    const size_t end = std::min(order.size(), begin + kWindowSamples);
    std::vector<uint32_t> rows = std::move(carry);
    rows.insert(rows.end(), order.begin() + static_cast<ptrdiff_t>(begin),
                order.begin() + static_cast<ptrdiff_t>(end));
    auto packs = pack_rows(sizes, rows, {options.sequence_length, options.max_images});
    carry.clear();
    if (end < order.size()) carry = take_loose(packs, options.sequence_length);
    // A carry as large as a window would only be sorted again and again: place it as it is.
    if (carry.size() > kWindowSamples / 2) {
      for (Pack& pack : pack_rows(sizes, carry, {options.sequence_length, options.max_images})) {
        packs.push_back(std::move(pack));
      }
      carry.clear();
    }
    shuffle(std::span(packs), random.child(begin));
    std::move(packs.begin(), packs.end(), std::back_inserter(all));
    begin = end;
  }
  return all;
}

}  // namespace

std::optional<Packing> packing_from_name(std::string_view name) {
  if (name == "tight") return Packing::kTight;
  if (name == "shuffled") return Packing::kShuffled;
  if (name == "none") return Packing::kNone;
  return std::nullopt;
}

EpochPlan plan_epoch(std::span<const SampleSize> sizes, const PlanOptions& options,
                     uint64_t epoch) {
  check_options(options);
  check_sizes(sizes, options);
  const Philox random = Philox(options.seed, "epoch order").child(epoch);
  std::vector<uint32_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0u);
  shuffle(std::span(order), random.child("samples"));
  std::vector<Pack> packs;
  switch (options.packing) {
    case Packing::kTight:
      packs = pack_windows(sizes, order, options, random.child("packs"));
      break;
    case Packing::kShuffled:
      packs = pack_in_order(sizes, order, {options.sequence_length, options.max_images});
      break;
    case Packing::kNone:
      for (const uint32_t row : order) packs.push_back(make_pack(sizes, {row}));
      break;
  }
  return {balance_steps(std::move(packs), options.packs_per_step, random.child("steps"))};
}

int micro_batches_per_rank(size_t packs, int ranks) {
  MM_CHECK(ranks > 0, "ranks = {}", ranks);
  const auto divisor = static_cast<size_t>(ranks);
  return static_cast<int>((packs + divisor - 1) / divisor);
}

std::vector<std::vector<uint32_t>> deal_step(const std::vector<Pack>& step, int ranks) {
  std::vector<double> costs;
  for (const Pack& pack : step) costs.push_back(pack_cost(pack));
  return longest_first(costs, static_cast<size_t>(ranks),
                       static_cast<size_t>(micro_batches_per_rank(step.size(), ranks)));
}

}  // namespace mm::data
