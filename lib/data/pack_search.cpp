#include "lib/data/pack_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "lib/data/pack_lp.h"

namespace mm::data {
namespace {

/// Samples of one class, given out longest first.
class ClassStock {
 public:
  ClassStock(const LengthClass& of, std::span<const LengthType> types)
      : types_(of.types), left_(of.count) {
    for (const uint32_t t : types_) counts_.push_back(types[t].count);
  }
  uint64_t left() const { return left_; }
  /// Packs that can each take `copies` samples of one type now; 0 where types change within a pack.
  uint64_t runs(uint64_t copies) const { return at_ < counts_.size() ? counts_[at_] / copies : 0; }
  /// Adds to `pattern` what `packs` packs get from this class, `copies` each or what there is.
  void give(uint64_t copies, uint64_t packs, std::vector<uint32_t>& pattern) {
    for (uint64_t i = 0; i < copies && at_ < counts_.size(); ++i) {
      pattern.push_back(types_[at_]);
      counts_[at_] -= packs;
      left_ -= packs;
      if (counts_[at_] == 0) ++at_;
    }
  }

 private:
  std::span<const uint32_t> types_;
  std::vector<uint64_t> counts_;
  size_t at_ = 0;
  uint64_t left_;
};

using Need = std::vector<std::pair<uint32_t, uint64_t>>;  ///< class, samples of it

Need need_of(const LpColumn& column) {
  std::map<uint32_t, uint64_t> copies;
  for (const uint32_t c : column.classes) ++copies[c];
  return {copies.begin(), copies.end()};
}

/// Packs of one column with real samples, in runs of equal content.
class Filling {
 public:
  Filling(std::span<const LengthClass> classes, std::span<const LengthType> types)
      : left_(types.size()) {
    for (const LengthClass& c : classes) stocks_.emplace_back(c, types);
    for (size_t t = 0; t < types.size(); ++t) left_[t] = types[t].count;
  }

  bool whole(const Need& need) const {
    return std::all_of(need.begin(), need.end(),
                       [&](const auto& n) { return stocks_[n.first].left() >= n.second; });
  }

  void fill(const Need& need, uint64_t packs) {
    while (packs > 0) {
      uint64_t run = packs;
      for (const auto& [c, copies] : need) run = std::min(run, stocks_[c].runs(copies));
      run = std::max<uint64_t>(run, 1);
      std::vector<uint32_t> pattern;
      for (const auto& [c, copies] : need) stocks_[c].give(copies, run, pattern);
      packs -= run;
      if (pattern.empty()) return;
      for (const uint32_t t : pattern) left_[t] -= run;
      std::sort(pattern.begin(), pattern.end());
      packs_.add(pattern, run);
    }
  }

  /// What no pack holds yet, and the type each entry stands for.
  std::pair<std::vector<LengthType>, std::vector<uint32_t>> rest(
      std::span<const LengthType> types) const {
    std::pair<std::vector<LengthType>, std::vector<uint32_t>> result;
    for (uint32_t t = 0; t < types.size(); ++t) {
      if (left_[t] == 0) continue;
      result.first.push_back({types[t].tokens, types[t].images, left_[t]});
      result.second.push_back(t);
    }
    return result;
  }
  PackPatterns take() { return std::move(packs_); }

 private:
  std::vector<ClassStock> stocks_;
  std::vector<uint64_t> left_;
  PackPatterns packs_;
};

/// Whole packs of each column, then one more of those with the largest fraction while there are
/// samples for it.
void round_columns(const LpSolution& solution, Filling& filling) {
  std::vector<std::pair<double, size_t>> fractions;
  for (size_t j = 0; j < solution.columns.size(); ++j) {
    const LpColumn& column = solution.columns[j];
    const double whole = std::floor(column.packs + 1e-6);
    filling.fill(need_of(column), static_cast<uint64_t>(whole));
    fractions.push_back({whole - column.packs, j});
  }
  std::sort(fractions.begin(), fractions.end());
  for (const auto& [fraction, j] : fractions) {
    const Need need = need_of(solution.columns[j]);
    if (filling.whole(need)) filling.fill(need, 1);
  }
}

}  // namespace

PackPatterns pack_search(std::span<const LengthType> types, const PackLimits& limits,
                         size_t classes) {
  const auto merged = merge_lengths(types, classes, Rounding::kUp);
  Filling filling(merged, types);
  round_columns(solve_packing_lp(merged, limits, Rounding::kUp), filling);
  const auto [rest, names] = filling.rest(types);
  PackPatterns exact = pack_exact(rest, limits), fit = pack_best_fit(rest, limits);
  PackPatterns& better = fit.packs() < exact.packs() ? fit : exact;
  for (uint32_t& item : better.items) item = names[item];
  PackPatterns packs = filling.take();
  packs.add(better);
  return packs;
}

}  // namespace mm::data
