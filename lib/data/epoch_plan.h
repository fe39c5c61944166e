#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mm::data {

/// What planning needs to know of a sample; a row of the index.
struct SampleSize {
  int32_t tokens = 0;  ///< after picture expansion and truncation
  int32_t images = 0;
  int32_t targets = 0;  ///< positions that get a loss, after the shift
};

/// How samples share packs.
enum class Packing {
  kTight,     ///< best fit, longest first: least padding, but a pack's samples are of like lengths
  kShuffled,  ///< in shuffled order into few open packs: a pack is a random draw, padding is up to
              ///< about a sample's length
  kNone,      ///< one sample a pack
};
/// "tight" "shuffled" "none".
std::optional<Packing> packing_from_name(std::string_view name);

/// Everything the order of an epoch depends on. Not the world size: position in a run is one
/// integer, the global step.
struct PlanOptions {
  uint64_t seed = 0;
  int32_t sequence_length = 0;  ///< tokens of a pack at most
  int32_t max_images = 0;       ///< pictures of a pack at most; 0: no cap
  int32_t packs_per_step = 1;   ///< global batch, in packs
  Packing packing = Packing::kTight;
};

/// One row of samples that attend only to themselves.
struct Pack {
  std::vector<uint32_t> samples;  ///< rows of the index
  int64_t tokens = 0, images = 0, targets = 0;
  double attention_pairs = 0;  ///< sum of s * (s + 1) / 2
};

/// The ordered global steps of one epoch: a pure function of (sizes, options, epoch). Each sample
/// stands in exactly one pack. The last step may hold fewer packs.
struct EpochPlan {
  std::vector<std::vector<Pack>> steps;
};

/// Throws DataError naming the sample when one exceeds sequence_length or max_images.
EpochPlan plan_epoch(std::span<const SampleSize> sizes, const PlanOptions& options, uint64_t epoch);

/// Deals a step's packs to `ranks` by modelled cost; pure. Result[r] are indices into `step`,
/// ascending; every rank runs ceil(packs / ranks) micro-batches, missing ones are empty with weight
/// 0 (micro_batches_per_rank).
std::vector<std::vector<uint32_t>> deal_step(const std::vector<Pack>& step, int ranks);
int micro_batches_per_rank(size_t packs, int ranks);

/// Where a run stands in a stage: its global step within the stage -> epoch and step of that epoch.
struct PlanPosition {
  uint64_t epoch = 0;
  uint64_t step_in_epoch = 0;
};

}  // namespace mm::data
