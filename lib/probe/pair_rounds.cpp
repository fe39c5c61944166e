#include "lib/probe/pair_rounds.h"

#include <algorithm>
#include <numeric>

#include "lib/probe/pair_grade.h"

namespace mm::probe {
namespace {

Pair make_pair(int x, int y) { return x < y ? Pair{x, y} : Pair{y, x}; }

// A member's best figure: a good link needs two good ends, so the best partner tells about oneself.
std::vector<double> best_of(int members, const std::vector<PairMeasure>& measures) {
  std::vector<double> best(static_cast<size_t>(members), 0);
  for (const PairMeasure& m : measures) {
    if (!m.error.empty()) continue;
    for (const int one : {m.pair.a, m.pair.b})
      best[static_cast<size_t>(one)] = std::max(best[static_cast<size_t>(one)], m.gb_s);
  }
  return best;
}

bool measured(const std::vector<PairMeasure>& measures, const Pair& pair) {
  return std::any_of(measures.begin(), measures.end(),
                     [&](const PairMeasure& m) { return m.pair == pair; });
}

void append(std::vector<PairMeasure>& all, std::vector<PairMeasure> more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

std::vector<Slot> first_round(int members) {
  std::vector<Slot> slots(1);
  for (int i = 0; i + 1 < members; i += 2) slots[0].push_back({i, i + 1});
  if (members % 2 == 1 && members > 1) slots.push_back({{0, members - 1}});
  if (slots[0].empty()) slots.clear();
  return slots;
}

std::vector<Slot> second_round(int members, const std::vector<PairMeasure>& first) {
  if (members < 3) return {};
  const std::vector<double> best = best_of(members, first);
  std::vector<int> order(static_cast<size_t>(members));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
    return best[static_cast<size_t>(x)] < best[static_cast<size_t>(y)];
  });
  std::vector<Slot> slots(1);
  std::vector<bool> taken(static_cast<size_t>(members), false);
  for (const int slow : order) {
    if (taken[static_cast<size_t>(slow)]) continue;
    // The fastest that is free and new to it.
    for (auto fast = order.rbegin(); fast != order.rend(); ++fast) {
      if (*fast == slow || taken[static_cast<size_t>(*fast)] ||
          measured(first, make_pair(slow, *fast)))
        continue;
      taken[static_cast<size_t>(slow)] = taken[static_cast<size_t>(*fast)] = true;
      slots[0].push_back(make_pair(slow, *fast));
      break;
    }
  }
  for (int one = 0; one < members; ++one) {
    if (taken[static_cast<size_t>(one)]) continue;
    for (auto fast = order.rbegin(); fast != order.rend(); ++fast) {
      const Pair pair = make_pair(one, *fast);
      if (*fast == one || measured(first, pair)) continue;
      slots.push_back({pair});
      taken[static_cast<size_t>(one)] = true;
      break;
    }
  }
  return slots;
}

// The circle method: one stays, the others go round.
std::vector<Slot> all_pairs(int members) {
  std::vector<Slot> slots;
  const int seats = members + members % 2;
  for (int turn = 0; turn + 1 < seats; ++turn) {
    Slot slot;
    for (int i = 0; i < seats / 2; ++i) {
      const int x = i == 0 ? seats - 1 : (turn + i) % (seats - 1);
      const int y = (turn + seats - 1 - i) % (seats - 1);
      if (x < members && y < members) slot.push_back(make_pair(x, y));
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

PairReport run_pairs(const std::vector<std::string>& members, const std::vector<std::string>& rails,
                     const PairOptions& options, const MeasureSlot& measure) {
  PairReport report{.members = members, .rails = rails};
  const int n = static_cast<int>(members.size());
  for (int rail = 0; rail < static_cast<int>(rails.size()); ++rail) {
    std::vector<PairMeasure> measures;
    const auto run = [&](const std::vector<Slot>& slots) {
      for (const Slot& slot : slots) append(measures, measure(slot, rail));
      report.slots += static_cast<int>(slots.size());
    };
    if (options.matrix) {
      run(all_pairs(n));
    } else {
      run(first_round(n));
      run(second_round(n, measures));
    }
    report.repeats += repeat_suspects(measures, options, rail, measure);
    append(report.measures, std::move(measures));
  }
  report.findings = judge_pairs(report, options);
  return report;
}

}  // namespace mm::probe
