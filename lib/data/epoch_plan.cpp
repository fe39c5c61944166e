#include "lib/data/epoch_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/epoch_planner.h"
#include "lib/data/packing.h"
#include "lib/data/step_balance.h"

namespace mm::data {
namespace {

constexpr std::array<std::pair<Packing, std::string_view>, 8> kPackings{
    {{Packing::kTight, "tight"},
     {Packing::kGreedy, "greedy"},
     {Packing::kBestFit, "best_fit"},
     {Packing::kExact, "exact"},
     {Packing::kSearch, "search"},
     {Packing::kShuffled, "shuffled"},
     {Packing::kNone, "none"},
     {Packing::kBuckets, "buckets"}}};

}  // namespace

std::optional<Packing> packing_from_name(std::string_view name) {
  for (const auto& [packing, word] : kPackings) {
    if (word == name) return packing;
  }
  return std::nullopt;
}

std::string_view name_of(Packing packing) {
  for (const auto& [known, word] : kPackings) {
    if (known == packing) return word;
  }
  throw InternalError("packing {}", static_cast<int>(packing));
}

std::vector<std::string> packing_names() {
  std::vector<std::string> names;
  for (const auto& [packing, word] : kPackings) names.emplace_back(word);
  return names;
}

std::optional<Oversize> oversize_from_name(std::string_view name) {
  if (name == "refuse") return Oversize::kRefuse;
  if (name == "drop") return Oversize::kDrop;
  return std::nullopt;
}

std::string_view name_of(Oversize oversize) {
  return oversize == Oversize::kRefuse ? "refuse" : "drop";
}

std::optional<Leftovers> leftovers_from_name(std::string_view name) {
  if (name == "keep") return Leftovers::kKeep;
  if (name == "drop") return Leftovers::kDrop;
  return std::nullopt;
}

std::string_view name_of(Leftovers leftovers) {
  return leftovers == Leftovers::kKeep ? "keep" : "drop";
}

void add_size(Pack& pack, const SampleSize& size) {
  pack.bucket = size.bucket;
  pack.tokens += size.tokens;
  pack.images += size.images;
  pack.targets += size.targets;
  pack.attention_pairs += static_cast<double>(attention_pairs_of(size.tokens));
}

Pack make_pack(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
               double image_cost) {
  Pack pack;
  pack.samples.assign(rows.begin(), rows.end());
  for (const uint32_t row : rows) add_size(pack, sizes[row]);
  pack.cost = pack_cost(pack, image_cost);
  return pack;
}

Pack planned_pack(std::span<const SampleSize> sizes, const PlanView& plan, uint64_t p,
                  double image_cost) {
  Pack pack = make_pack(sizes, plan.pack(p), image_cost);
  pack.fillers = plan.fillers_of(p);
  if (pack.samples.empty() && pack.fillers > 0) {
    const auto step = std::ranges::upper_bound(plan.step_begin, p) - 1;
    const std::span<const uint32_t> first = plan.pack(*step);
    MM_CHECK(!first.empty(), "a step of fillers alone at pack {}", *step);
    pack.bucket = sizes[first.front()].bucket;
  }
  if (!pack.bucket.empty()) pack.cost = pack_cost(pack, image_cost);
  return pack;
}

std::vector<Pack> packs_of_step(std::span<const SampleSize> sizes, const PlanView& plan,
                                uint64_t step, double image_cost) {
  std::vector<Pack> packs;
  packs.reserve(plan.packs_of_step(step));
  for (uint64_t p = plan.step_begin[step]; p < plan.step_begin[step + 1]; ++p)
    packs.push_back(planned_pack(sizes, plan, p, image_cost));
  return packs;
}

std::optional<uint64_t> costliest_pack(std::span<const SampleSize> sizes, const PlanView& plan,
                                       double image_cost) {
  std::optional<uint64_t> costliest;
  double most = -1;
  for (uint64_t p = 0; p < plan.packs(); ++p) {
    if (plan.pack(p).empty()) continue;  // of fillers; not more than the first of its step
    Pack sums;
    for (const uint32_t row : plan.pack(p)) add_size(sums, sizes[row]);
    sums.fillers = plan.fillers_of(p);
    const double cost = pack_cost(sums, image_cost);
    if (cost > most) {
      most = cost;
      costliest = p;
    }
  }
  return costliest;
}

PlanTable plan_epoch_table(std::span<const SampleSize> sizes, const PlanOptions& options,
                           uint64_t epoch) {
  return EpochPlanner(sizes, options).plan(epoch);
}

EpochPlan plan_epoch(std::span<const SampleSize> sizes, const PlanOptions& options,
                     uint64_t epoch) {
  const PlanTable table = plan_epoch_table(sizes, options, epoch);
  EpochPlan plan;
  for (uint64_t s = 0; s < table.view().steps(); ++s)
    plan.steps.push_back(packs_of_step(sizes, table.view(), s, options.image_cost));
  return plan;
}

int micro_batches_per_rank(size_t packs, int ranks) {
  MM_CHECK(ranks > 0, "ranks = {}", ranks);
  const auto divisor = static_cast<size_t>(ranks);
  return static_cast<int>((packs + divisor - 1) / divisor);
}

std::vector<std::vector<uint32_t>> deal_step(const std::vector<Pack>& step, int ranks) {
  std::vector<double> costs;
  for (const Pack& pack : step) costs.push_back(pack.cost);
  return deal_evenly(costs, static_cast<size_t>(ranks));
}

}  // namespace mm::data
