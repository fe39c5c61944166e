#include "lib/data/pack_patterns.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace mm::data {

uint64_t PackPatterns::packs() const {
  return std::accumulate(times.begin(), times.end(), uint64_t{0});
}

void PackPatterns::add(std::span<const uint32_t> pattern, uint64_t pattern_times) {
  items.insert(items.end(), pattern.begin(), pattern.end());
  begin.push_back(items.size());
  times.push_back(pattern_times);
}

void PackPatterns::add(const PackPatterns& more) {
  for (size_t p = 0; p < more.size(); ++p) add(more.pattern(p), more.times[p]);
}

TypeStock::TypeStock(std::span<const LengthType> types) : types_(types), jump_(types.size() + 1) {
  for (const LengthType& type : types) left_.push_back(type.count);
  std::iota(jump_.begin(), jump_.end(), 0u);
}

uint32_t TypeStock::next(uint32_t from) {
  uint32_t at = from;
  while (at < left_.size() && left_[at] == 0) at = std::max(at + 1, jump_[at]);
  // Every empty type passed now leads straight here.
  for (uint32_t i = from; i < at;) {
    const uint32_t after = std::max(i + 1, jump_[i]);
    jump_[i] = at;
    i = after;
  }
  return at;
}

uint32_t TypeStock::next_at_most(int64_t tokens) {
  const auto place = std::partition_point(
      types_.begin(), types_.end(), [&](const LengthType& type) { return type.tokens > tokens; });
  return next(static_cast<uint32_t>(place - types_.begin()));
}

uint64_t TypeStock::take_all(std::span<const uint32_t> pattern) {
  uint64_t times = std::numeric_limits<uint64_t>::max();
  for (const uint32_t type : pattern) {
    const auto need = static_cast<uint64_t>(std::count(pattern.begin(), pattern.end(), type));
    times = std::min(times, left_[type] / need);
  }
  for (const uint32_t type : pattern) left_[type] -= times;
  return times;
}

PackPatterns pack_greedy(std::span<const LengthType> types, const PackLimits& limits) {
  PackPatterns packs;
  TypeStock stock(types);
  std::vector<uint32_t> pattern;
  for (uint32_t seed = stock.next(0); seed < types.size(); seed = stock.next(seed)) {
    pattern.clear();
    PackRoom room = PackRoom::of(limits);
    for (uint32_t t = seed; t < types.size();
         t = stock.next(std::max(t + 1, stock.next_at_most(room.tokens)))) {
      const int64_t times =
          room.times(types[t].tokens, types[t].images, static_cast<int64_t>(stock.left(t)));
      pattern.insert(pattern.end(), static_cast<size_t>(times), t);
      room.take(types[t].tokens, types[t].images, times);
    }
    packs.add(pattern, stock.take_all(pattern));
  }
  return packs;
}

namespace {

/// Packs with the same content, still open.
struct Group {
  std::vector<uint32_t> pattern;
  PackRoom room;
  uint64_t packs = 0;
};

/// Best fit of one type after the other over groups of like packs, by room, fullest first.
class BestFit {
 public:
  BestFit(std::span<const LengthType> types, const PackLimits& limits)
      : types_(types), limits_(limits) {}

  void place(uint32_t type) {
    uint64_t left = types_[type].count;
    int tries = 0;
    for (auto it = open_.lower_bound(types_[type].tokens);
         left > 0 && it != open_.end() && tries < kFitTries;) {
      if (it->second.room.fits(types_[type].tokens, types_[type].images)) {
        Group group = std::move(it->second);
        it = open_.erase(it);
        left = fill(std::move(group), type, left);
      } else {
        ++it;
        ++tries;
      }
    }
    while (left > 0) {
      const Group fresh{{}, PackRoom::of(limits_), left};
      left = fill(fresh, type, left);
    }
  }

  PackPatterns finish() {
    for (const auto& [room, group] : open_) packs_.add(group.pattern, group.packs);
    return std::move(packs_);
  }

 private:
  /// As many of the type as fit into each pack of the group, until they or the packs run out.
  uint64_t fill(Group group, uint32_t type, uint64_t left) {
    const LengthType& size = types_[type];
    const auto each = static_cast<uint64_t>(
        group.room.times(size.tokens, size.images, static_cast<int64_t>(left)));
    const uint64_t full = std::min(group.packs, left / each);
    keep(group, type, each, full);
    left -= full * each;
    group.packs -= full;
    if (left > 0 && group.packs > 0) {
      keep(group, type, left, 1);
      left = 0;
      --group.packs;
    }
    if (group.packs > 0 && !group.pattern.empty()) open_.emplace(group.room.tokens, group);
    return left;
  }

  void keep(const Group& from, uint32_t type, uint64_t count, uint64_t packs) {
    if (packs == 0) return;
    Group group{from.pattern, from.room, packs};
    group.pattern.insert(group.pattern.end(), count, type);
    group.room.take(types_[type].tokens, types_[type].images, static_cast<int64_t>(count));
    if (group.room.tokens > 0)
      open_.emplace(group.room.tokens, std::move(group));
    else
      packs_.add(group.pattern, group.packs);
  }

  std::span<const LengthType> types_;
  const PackLimits limits_;
  std::multimap<int64_t, Group> open_;
  PackPatterns packs_;
};

}  // namespace

PackPatterns pack_best_fit(std::span<const LengthType> types, const PackLimits& limits) {
  BestFit fit(types, limits);
  for (uint32_t t = 0; t < types.size(); ++t) fit.place(t);
  return fit.finish();
}

}  // namespace mm::data
