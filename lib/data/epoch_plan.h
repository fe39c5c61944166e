#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/bucket_shape.h"
#include "lib/data/plan_table.h"

namespace mm::data {

/// What planning needs to know of a sample; a row of the index.
struct SampleSize {
  int32_t tokens =
      0;  ///< after picture expansion and truncation; in a bucketed set: of the caption
  int32_t images = 0;
  int32_t targets = 0;  ///< positions that get a loss, after the shift; in a bucketed set: pictures
  BucketShape bucket = {};  ///< of its picture in a bucketed set

  friend bool operator==(const SampleSize&, const SampleSize&) = default;
};

/// How samples share packs. All but kShuffled and kNone depend on the lengths alone (which samples
/// of a length meet, and the order of packs, are drawn per epoch), and sort packs of like cost into
/// a step.
enum class Packing {
  kTight,     ///< the one with the fewest packs of the next four
  kGreedy,    ///< one pack after the other, always the longest sample that still fits
  kBestFit,   ///< longest sample first, each into the fullest pack that takes it
  kExact,     ///< one pack after the other: longest first, the rest chosen to leave the least room
  kSearch,    ///< linear program over packs of classes of lengths, rounded; the rest by kExact
  kShuffled,  ///< in shuffled order into few open packs: a pack is a random draw, padding is up to
              ///< about a sample's length
  kNone,      ///< one sample a pack
  kBuckets,   ///< of a bucketed set: a pack is a batch of pictures of one shape (bucket_steps.h)
};
/// "tight" "greedy" "best_fit" "exact" "search" "shuffled" "none" "buckets".
std::optional<Packing> packing_from_name(std::string_view name);
std::string_view name_of(Packing packing);
/// All of them, in the order of the enum.
std::vector<std::string> packing_names();

/// What becomes of a sample that no pack can hold.
enum class Oversize {
  kRefuse,  ///< the plan is refused, naming it
  kDrop,    ///< it stands among the plan's dropped rows, in no pack
};
/// "refuse" "drop".
std::optional<Oversize> oversize_from_name(std::string_view name);
std::string_view name_of(Oversize oversize);

/// What becomes of pictures that are left over when steps of full batches are made (kBuckets).
enum class Leftovers {
  kKeep,  ///< they make smaller batches, filled up to equal work with pictures of weight 0
  kDrop,  ///< they stand among the plan's dropped rows
};
/// "keep" "drop".
std::optional<Leftovers> leftovers_from_name(std::string_view name);
std::string_view name_of(Leftovers leftovers);

/// Everything the order of an epoch depends on. Not the world size: position in a run is one
/// integer, the global step.
struct PlanOptions {
  uint64_t seed = 0;
  int32_t sequence_length = 0;  ///< tokens of a pack at most
  int32_t max_images = 0;       ///< pictures of a pack at most; 0: no cap
  int32_t packs_per_step = 1;   ///< global batch, in packs
  Packing packing = Packing::kTight;
  Oversize oversize = Oversize::kRefuse;
  /// Sum of s * (s + 1) / 2 over a pack's samples at most; 0: no cap. At least that of one sample.
  int64_t max_attention_pairs = 0;
  /// Work of one picture's encoder, in tokens of the language model: a part of a pack's cost.
  double image_cost = 0;
  /// kBuckets, where it takes the place of the four caps above: pixels of a batch at most, but at
  /// least one picture. packs_per_step is then the number of batches of a step.
  int64_t batch_pixels = 0;
  Leftovers leftovers = Leftovers::kKeep;  ///< kBuckets

  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

/// One row of samples that attend only to themselves; in a bucketed set a batch of pictures.
struct Pack {
  std::vector<uint32_t> samples;  ///< rows of the index
  int64_t tokens = 0, images = 0, targets = 0;
  double attention_pairs = 0;  ///< sum of s * (s + 1) / 2
  double cost = 0;             ///< modelled work, in tokens: pack_cost; of a bucket in pixels
  /// Of a bucketed set: the shape of all its pictures, and how many more pictures of weight 0 stand
  /// behind those of `samples` (not counted in `images` and `targets`). There may be no samples.
  BucketShape bucket = {};
  int64_t fillers = 0;

  /// Of a bucketed set: pictures of the micro-batch, and their pixels.
  int64_t pictures() const { return images + fillers; }
  int64_t pixels() const { return pictures() * bucket.pixels(); }
};

/// A pack of exactly these rows, with its sums.
Pack make_pack(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
               double image_cost = 0);

/// Pack `p` of a plan with its sums.
Pack planned_pack(std::span<const SampleSize> sizes, const PlanView& plan, uint64_t p,
                  double image_cost = 0);

/// Adds a sample's tokens, images, targets and attention pairs to the pack's sums.
void add_size(Pack& pack, const SampleSize& size);
/// The packs of step `step` < plan.steps(), with their sums.
std::vector<Pack> packs_of_step(std::span<const SampleSize> sizes, const PlanView& plan,
                                uint64_t step, double image_cost = 0);
/// The pack that costs most (of equals the first): what fits in memory with it fits with all. None
/// in an empty plan. O(rows).
std::optional<uint64_t> costliest_pack(std::span<const SampleSize> sizes, const PlanView& plan,
                                       double image_cost = 0);

/// The ordered global steps of one epoch: a pure function of (sizes, options, epoch). Each sample
/// stands in exactly one pack, or among the dropped. Only the last step may hold fewer packs; with
/// kBuckets none does.
/// Throws UsageError for impossible options, and DataError naming the sample when one passes a cap
/// and oversize is kRefuse. About O(n); what depends on lengths alone is made once by
/// EpochPlanner, which is the way to plan several epochs.
PlanTable plan_epoch_table(std::span<const SampleSize> sizes, const PlanOptions& options,
                           uint64_t epoch);

/// The same with every pack's sums, for small plans.
struct EpochPlan {
  std::vector<std::vector<Pack>> steps;
};
EpochPlan plan_epoch(std::span<const SampleSize> sizes, const PlanOptions& options, uint64_t epoch);

/// Deals a step's packs to `ranks` by modelled cost (deal_evenly); pure. Result[r] are indices into
/// `step`, ascending; every rank runs ceil(packs / ranks) micro-batches, missing ones are empty
/// with weight 0 (micro_batches_per_rank).
std::vector<std::vector<uint32_t>> deal_step(const std::vector<Pack>& step, int ranks);
int micro_batches_per_rank(size_t packs, int ranks);

/// Where a run stands in a stage: its global step within the stage -> epoch and step of that epoch.
struct PlanPosition {
  uint64_t epoch = 0;
  uint64_t step_in_epoch = 0;
};

}  // namespace mm::data
