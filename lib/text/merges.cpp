#include "lib/text/merges.h"

#include <algorithm>
#include <functional>
#include <span>

namespace mm::text {
namespace {

// Below this a scan over all pairs is faster than a queue.
constexpr size_t kShortWord = 48;

size_t merge_short(std::span<Symbol> symbols, const MergeTable& table,
                   std::vector<MergeTable::Rule>& rules) {
  size_t count = symbols.size();
  rules.resize(count);
  for (size_t i = 0; i + 1 < count; ++i) rules[i] = table.find(symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (rules[i].rank < rules[best].rank) best = i;
    }
    if (rules[best].rank == MergeTable::kNone) break;
    symbols[best].id = rules[best].id;
    std::copy(symbols.begin() + best + 2, symbols.begin() + count, symbols.begin() + best + 1);
    std::copy(rules.begin() + best + 1, rules.begin() + count, rules.begin() + best);
    --count;
    if (best + 1 < count) rules[best] = table.find(symbols[best].id, symbols[best + 1].id);
    if (best > 0) rules[best - 1] = table.find(symbols[best - 1].id, symbols[best].id);
  }
  return count;
}

// Symbols as a linked list, so that a merge costs O(log n). A queue entry is stale when the pair at
// its place has another rank by now.
class LongWord {
 public:
  LongWord(std::span<Symbol> symbols, const MergeTable& table, MergeRoom& room)
      : symbols_(symbols), table_(table), room_(room) {
    const auto count = static_cast<uint32_t>(symbols.size());
    room.next.resize(count);
    room.previous.resize(count);
    room.rules.assign(count, {MergeTable::kNone, -1});
    room.queue.clear();
    for (uint32_t i = 0; i < count; ++i) {
      room.next[i] = i + 1;
      room.previous[i] = i - 1;
    }
    for (uint32_t i = 0; i + 1 < count; ++i) offer(i);
  }

  size_t run() {
    while (!room_.queue.empty()) {
      std::pop_heap(room_.queue.begin(), room_.queue.end(), std::greater<>());
      const uint64_t top = room_.queue.back();
      room_.queue.pop_back();
      const auto place = static_cast<uint32_t>(top);
      if (room_.rules[place].rank == static_cast<int32_t>(top >> 32)) merge(place);
    }
    size_t count = 0;
    for (uint32_t i = 0; i < symbols_.size(); i = room_.next[i]) symbols_[count++] = symbols_[i];
    return count;
  }

 private:
  void offer(uint32_t left) {
    const uint32_t right = room_.next[left];
    room_.rules[left] = right < symbols_.size() ? table_.find(symbols_[left].id, symbols_[right].id)
                                                : MergeTable::Rule{MergeTable::kNone, -1};
    if (room_.rules[left].rank == MergeTable::kNone) return;
    room_.queue.push_back(static_cast<uint64_t>(room_.rules[left].rank) << 32 | left);
    std::push_heap(room_.queue.begin(), room_.queue.end(), std::greater<>());
  }

  void merge(uint32_t left) {
    const uint32_t right = room_.next[left];
    symbols_[left].id = room_.rules[left].id;
    room_.rules[right].rank = MergeTable::kNone;
    room_.next[left] = room_.next[right];
    if (room_.next[left] < symbols_.size()) room_.previous[room_.next[left]] = left;
    offer(left);
    if (room_.previous[left] < symbols_.size()) offer(room_.previous[left]);
  }

  std::span<Symbol> symbols_;
  const MergeTable& table_;
  MergeRoom& room_;
};

}  // namespace

void merge_symbols(std::vector<Symbol>& symbols, size_t first, const MergeTable& table,
                   MergeRoom& room) {
  const std::span<Symbol> word = std::span(symbols).subspan(first);
  if (word.size() < 2) return;
  const size_t count = word.size() <= kShortWord ? merge_short(word, table, room.rules)
                                                 : LongWord(word, table, room).run();
  symbols.resize(first + count);
}

}  // namespace mm::text
