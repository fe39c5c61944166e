#include <vector>

#include "lib/data/pack_patterns.h"

namespace mm::data {
namespace {

/// Depth-first search for the content that leaves the least room after a given first sample.
class LeastSlack {
 public:
  LeastSlack(std::span<const LengthType> types, TypeStock& stock) : types_(types), stock_(stock) {}

  /// Best pattern that begins with `seed`.
  const std::vector<uint32_t>& find(uint32_t seed, PackRoom room) {
    nodes_ = kFillNodes;
    best_slack_ = room.tokens;
    best_.clear();
    pattern_.clear();
    push(seed, room);
    descend(seed, room);
    return best_;
  }

 private:
  void push(uint32_t type, PackRoom& room) {
    pattern_.push_back(type);
    room.take(types_[type].tokens, types_[type].images);
  }

  uint64_t left(uint32_t type) const {
    uint64_t used = 0;
    for (size_t i = pattern_.size(); i-- > 0 && pattern_[i] == type;) ++used;
    return stock_.left(type) - used;
  }

  /// Types not before `from`, so that each content is met once.
  void descend(uint32_t from, const PackRoom& room) {
    if (best_.empty() || room.tokens < best_slack_) {
      best_slack_ = room.tokens;
      best_ = pattern_;
    }
    for (uint32_t t = std::max(from, stock_.next_at_most(room.tokens)); t < types_.size();
         t = stock_.next(t + 1)) {
      if (best_slack_ == 0 || --nodes_ < 0) return;
      if (!room.fits(types_[t].tokens, types_[t].images) || left(t) == 0) continue;
      PackRoom rest = room;
      push(t, rest);
      descend(t, rest);
      pattern_.pop_back();
    }
  }

  std::span<const LengthType> types_;
  TypeStock& stock_;
  std::vector<uint32_t> pattern_, best_;
  int64_t best_slack_ = 0;
  int nodes_ = 0;
};

}  // namespace

PackPatterns pack_exact(std::span<const LengthType> types, const PackLimits& limits) {
  PackPatterns packs;
  TypeStock stock(types);
  LeastSlack search(types, stock);
  for (uint32_t seed = stock.next(0); seed < types.size(); seed = stock.next(seed)) {
    const auto& pattern = search.find(seed, PackRoom::of(limits));
    packs.add(pattern, stock.take_all(pattern));
  }
  return packs;
}

}  // namespace mm::data
