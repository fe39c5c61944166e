#include "lib/data/bucket_leftovers.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <utility>

#include "lib/base/error.h"

namespace mm::data {
namespace {

/// 1 - mean / max of a step at most; a little below the limit, for rounding.
constexpr double kShortage = 1 - 1 / kPixelBalance - 1e-6;
/// Levels that are tried a step; of more, batches are thinned out.
constexpr uint64_t kMostLevels = 4096;

/// What a step takes of one bucket at a level: full batches, and one of `rest` pictures.
struct Share {
  uint32_t place = 0;  ///< in the list of what is left
  uint32_t batch = 0;
  double shortage = 0;  ///< what a slot of it lacks, as a share of the level
  uint64_t full = 0;
  uint32_t rest = 0;
};

/// One step tried.
struct Trial {
  std::vector<Share> shares;  ///< least shortage first; the first lacks nothing
  double level = 0;           ///< pixels of the fullest slot
  double real = 0;            ///< pixels that are not of fillers
  double spare = 0;           ///< sum of shortages that the step could still bear
  bool takes_all = false;
};

/// How many slots the trial still has room for, of a kind that lacks `shortage`.
uint64_t affordable(const Trial& trial, uint64_t room, double shortage) {
  if (shortage <= 0) return room;
  return std::min(room, static_cast<uint64_t>(trial.spare / shortage));
}

std::vector<Share> shares_at(std::span<const BucketLeft> left, int64_t level) {
  std::vector<Share> shares;
  for (uint32_t i = 0; i < left.size(); ++i) {
    const auto batch = std::min<int64_t>(left[i].batch, level / left[i].pixels);
    if (left[i].pictures == 0 || batch == 0) continue;
    const auto pixels = static_cast<double>(batch * left[i].pixels);
    shares.push_back({.place = i,
                      .batch = static_cast<uint32_t>(batch),
                      .shortage = std::max(0.0, 1 - pixels / static_cast<double>(level))});
  }
  std::ranges::stable_sort(shares, {}, &Share::shortage);
  return shares;
}

/// Batches that need fillers, the largest first.
void take_rests(std::span<const BucketLeft> left, uint64_t& room, Trial& trial) {
  std::vector<std::pair<int64_t, Share*>> rests;
  for (Share& share : trial.shares) {
    const uint64_t rest = left[share.place].pictures - share.full * share.batch;
    if (rest > 0 && rest < share.batch)
      rests.emplace_back(static_cast<int64_t>(rest) * left[share.place].pixels, &share);
  }
  std::ranges::stable_sort(rests, std::greater<>(), [](const auto& r) { return r.first; });
  for (const auto& [pixels, share] : rests) {
    if (affordable(trial, room, share->shortage) == 0) continue;
    share->rest = static_cast<uint32_t>(pixels / left[share->place].pixels);
    trial.real += static_cast<double>(pixels);
    trial.spare -= share->shortage;
    --room;
  }
}

Trial try_level(std::span<const BucketLeft> left, uint32_t per_step, int64_t level) {
  Trial trial{.shares = shares_at(left, level), .level = static_cast<double>(level)};
  trial.spare = kShortage * per_step;
  uint64_t room = per_step, taken = 0, there = 0;
  for (Share& share : trial.shares) {
    share.full =
        std::min(affordable(trial, room, share.shortage), left[share.place].pictures / share.batch);
    trial.real += static_cast<double>(share.full * share.batch) *
                  static_cast<double>(left[share.place].pixels);
    trial.spare -= share.shortage * static_cast<double>(share.full);
    room -= share.full;
  }
  take_rests(left, room, trial);
  for (const Share& share : trial.shares) taken += share.full * share.batch + share.rest;
  for (const BucketLeft& b : left) there += b.pictures;
  trial.takes_all = taken == there;
  return trial;
}

/// Pixels that a slot may have: whole numbers of pictures of some bucket, most first.
std::vector<int64_t> levels_of(std::span<const BucketLeft> left) {
  uint64_t all = 0;
  for (const BucketLeft& b : left) all += b.pictures > 0 ? b.batch : 0;
  std::vector<int64_t> levels;
  for (const BucketLeft& b : left) {
    if (b.pictures == 0) continue;
    for (int64_t batch = b.batch; batch > 0;) {
      levels.push_back(batch * b.pixels);
      batch = all > kMostLevels ? batch / 2 : batch - 1;
    }
  }
  std::ranges::sort(levels, std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

/// How steps are chosen: by real pixels over pixels plus `overhead` of a full step; one that takes
/// all that is left comes first if `finish`.
struct Way {
  double overhead = 0;
  bool finish = false;
};

Trial best_step(std::span<const BucketLeft> left, uint32_t per_step, double full, const Way& way) {
  Trial best;
  std::pair<bool, double> best_score{false, -1};
  for (const int64_t level : levels_of(left)) {
    Trial trial = try_level(left, per_step, level);
    const std::pair score{way.finish && trial.takes_all,
                          trial.real / (per_step * (trial.level + way.overhead * full))};
    if (score <= best_score) continue;
    best_score = score;
    best = std::move(trial);
  }
  return best;
}

/// Slots of fewer real pictures first out last.
struct FewerReal {
  bool operator()(const std::pair<BucketSlot, double>& a,
                  const std::pair<BucketSlot, double>& b) const {
    return a.first.real < b.first.real;
  }
};

/// The trial's slots; those that nothing is left for share the pictures of the fullest.
std::vector<BucketSlot> slots_of(const Trial& trial, uint32_t per_step) {
  std::priority_queue<std::pair<BucketSlot, double>, std::vector<std::pair<BucketSlot, double>>,
                      FewerReal>
      queue;
  std::vector<BucketSlot> slots;
  for (const Share& share : trial.shares) {
    for (uint64_t i = 0; i < share.full; ++i)
      queue.push({{share.place, share.batch, 0}, share.shortage});
    if (share.rest > 0)
      queue.push({{share.place, share.rest, share.batch - share.rest}, share.shortage});
  }
  double spare = trial.spare;
  while (!queue.empty() && queue.size() + slots.size() < per_step) {
    const auto [slot, shortage] = queue.top();
    queue.pop();
    const uint32_t half = slot.real / 2;
    if (half == 0 || shortage > spare) {
      slots.push_back(slot);
      continue;
    }
    spare -= shortage;
    queue.push({{slot.bucket, slot.real - half, slot.fillers + half}, shortage});
    queue.push({{slot.bucket, half, slot.pictures() - half}, shortage});
  }
  for (; !queue.empty(); queue.pop()) slots.push_back(queue.top().first);
  return slots;
}

/// What one greedy way gives.
struct Outcome {
  std::vector<BucketSlot> slots;
  double cost = 0;
};

/// Of what the step has too few pictures for, fillers of the bucket that lacks nothing.
void fill_up(const Trial& step, uint32_t per_step, std::vector<BucketSlot>& slots) {
  if (slots.size() == per_step) return;
  const Share& even = step.shares.front();
  const auto first = std::ranges::find(slots, even.place, &BucketSlot::bucket);
  MM_CHECK(first != slots.end(), "no picture of bucket {} at its own level", even.place);
  std::swap(*first, slots.front());
  while (slots.size() < per_step) slots.push_back({even.place, 0, even.batch});
}

Outcome go(std::vector<BucketLeft> left, uint32_t per_step, double full, const Way& way) {
  Outcome outcome;
  while (std::ranges::any_of(left, [](const BucketLeft& b) { return b.pictures > 0; })) {
    const Trial step = best_step(left, per_step, full, way);
    MM_CHECK(step.real > 0, "no step for {} buckets of pictures", left.size());
    outcome.cost += per_step * (step.level + kStepOverhead * full);
    std::vector<BucketSlot> slots = slots_of(step, per_step);
    fill_up(step, per_step, slots);
    for (BucketSlot& slot : slots) {
      left[slot.bucket].pictures -= slot.real;
      slot.bucket = left[slot.bucket].bucket;
      outcome.slots.push_back(slot);
    }
  }
  return outcome;
}

}  // namespace

void pack_leftovers(std::span<const BucketLeft> left, uint32_t per_step,
                    std::vector<BucketSlot>& slots) {
  double full = 0;
  for (const BucketLeft& b : left) full = std::max(full, static_cast<double>(b.batch * b.pixels));
  constexpr std::array<Way, 4> kWays{{{0, false}, {0, true}, {0.1, false}, {0.1, true}}};
  Outcome best;
  for (const Way& way : kWays) {
    Outcome outcome = go({left.begin(), left.end()}, per_step, full, way);
    if (best.slots.empty() || outcome.cost < best.cost) best = std::move(outcome);
  }
  slots.insert(slots.end(), best.slots.begin(), best.slots.end());
}

}  // namespace mm::data
