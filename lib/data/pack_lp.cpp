#include "lib/data/pack_lp.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lib/data/pack_grid.h"

namespace mm::data {
namespace {

constexpr double kTiny = 1e-9;
constexpr double kGapEnough = 2e-4;
constexpr double kSmoothing = 0.5;

/// Ends of runs of one image count's types (longest first) whose loss by rounding stays within
/// `loss` samples' tokens a run.
template <typename Add>
void cut_runs(std::span<const LengthType> types, std::span<const uint32_t> group, Rounding rounding,
              int64_t loss, Add add) {
  size_t begin = 0;
  int64_t lost = 0, samples = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const LengthType& type = types[group[i]];
    const auto count = static_cast<int64_t>(type.count);
    // Up: each later type of the run counts as its first. Down: all before count as the new last.
    const int64_t more = i == begin ? 0
                         : rounding == Rounding::kUp
                             ? count * (types[group[begin]].tokens - type.tokens)
                             : samples * (types[group[i - 1]].tokens - type.tokens);
    if (i > begin && lost + more > loss) {
      add(group.subspan(begin, i - begin));
      begin = i;
      lost = samples = 0;
    } else {
      lost += more;
    }
    samples += count;
  }
  if (begin < group.size()) add(group.subspan(begin));
}

std::vector<std::vector<uint32_t>> by_images(std::span<const LengthType> types) {
  std::map<int32_t, std::vector<uint32_t>> groups;
  for (uint32_t t = 0; t < types.size(); ++t) groups[types[t].images].push_back(t);
  std::vector<std::vector<uint32_t>> result;
  for (auto& [images, group] : groups) result.push_back(std::move(group));
  return result;
}

LengthClass class_of(std::span<const LengthType> types, std::span<const uint32_t> run,
                     Rounding rounding) {
  const uint32_t sized = rounding == Rounding::kUp ? run.front() : run.back();
  LengthClass result{types[sized].tokens, types[sized].images, 0, {run.begin(), run.end()}};
  for (const uint32_t t : run) result.count += types[t].count;
  return result;
}

using Cell = PackGrid::Cell;

bool fits(const Cell& cell, const Cell& room) {
  return cell.tokens <= room.tokens && cell.images <= room.images && cell.pairs <= room.pairs;
}
Cell minus(const Cell& room, const Cell& cell) {
  return {room.tokens - cell.tokens, room.images - cell.images, room.pairs - cell.pairs};
}

/// A sparse column: (class, samples of it), and its classes one by one.
struct Column {
  std::vector<uint32_t> classes;
  int surplus = -1;  ///< >= 0: not packs, but samples of this class beyond its count
};

/// Vector loops of the simplex, not checked by sanitizers as raise_values is not.
__attribute__((no_sanitize("address,undefined"))) void add_scaled(double* __restrict to,
                                                                  const double* __restrict from,
                                                                  double factor, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

/// Revised simplex for: fewest packs, every class covered. Row i belongs to class i.
class Simplex {
 public:
  explicit Simplex(std::vector<Column> singles, std::span<const LengthClass> classes)
      : size_(classes.size()), basis_(std::move(singles)), inverse_(size_ * size_, 0.0) {
    for (size_t i = 0; i < size_; ++i) {
      const auto copies = static_cast<double>(basis_[i].classes.size());
      inverse_[i * size_ + i] = 1 / copies;
      amount_.push_back(static_cast<double>(classes[i].count) / copies);
    }
    refresh_prices();
  }

  const std::vector<double>& prices() const { return prices_; }
  std::vector<Column>& basis() { return basis_; }
  const std::vector<double>& amounts() const { return amount_; }
  double objective() const {
    double sum = 0;
    for (size_t r = 0; r < size_; ++r) sum += basis_[r].surplus < 0 ? amount_[r] : 0;
    return sum;
  }
  /// What one more unit of the column saves, in packs.
  double saving(const Column& column) const {
    if (column.surplus >= 0) return -prices_[static_cast<size_t>(column.surplus)];
    double worth = -1;
    for (const uint32_t c : column.classes) worth += prices_[c];
    return worth;
  }

  /// Takes the column into the basis in place of the one that reaches zero first.
  void enter(const Column& column) {
    direction_.assign(size_, 0.0);
    if (column.surplus >= 0) {
      add_to_direction(static_cast<size_t>(column.surplus), -1);
    } else {
      for (const uint32_t c : column.classes) add_to_direction(c, 1);
    }
    size_t out = size_;
    double step = 0;
    for (size_t r = 0; r < size_; ++r) {
      if (direction_[r] <= kTiny) continue;
      const double ratio = amount_[r] / direction_[r];
      if (out == size_ || ratio < step || (ratio == step && direction_[r] > direction_[out])) {
        out = r;
        step = ratio;
      }
    }
    if (out == size_) return;
    pivot(column, out, step);
  }

  void refresh_prices() {
    prices_.assign(size_, 0.0);
    for (size_t k = 0; k < size_; ++k) {
      double sum = 0;
      for (size_t r = 0; r < size_; ++r) {
        if (basis_[r].surplus < 0) sum += inverse_[k * size_ + r];
      }
      prices_[k] = sum;
    }
  }

 private:
  void add_to_direction(size_t row, double factor) {
    add_scaled(direction_.data(), &inverse_[row * size_], factor, size_);
  }

  void pivot(const Column& column, size_t out, double step) {
    const double gain = saving(column);
    for (size_t r = 0; r < size_; ++r)
      amount_[r] = std::max(0.0, amount_[r] - step * direction_[r]);
    amount_[out] = step;
    const double scale = 1 / direction_[out];
    direction_[out] = 0;
    for (size_t k = 0; k < size_; ++k) {
      double* to = &inverse_[k * size_];
      const double factor = to[out] * scale;
      if (factor == 0) continue;
      add_scaled(to, direction_.data(), -factor, size_);
      to[out] = factor;
      prices_[k] -= gain * factor;
    }
    basis_[out] = column;
  }

  size_t size_;
  std::vector<Column> basis_;
  std::vector<double> inverse_;  ///< [column of the matrix, row]: column by column
  std::vector<double> amount_, prices_, direction_;
};

/// The knapsack whose dearest contents are the columns worth taking.
class Pricing {
 public:
  Pricing(std::span<const LengthClass> classes, const PackLimits& limits, Rounding rounding)
      : grid_(limits, rounding) {
    for (const LengthClass& c : classes) cells_.push_back(grid_.cell(c.tokens, c.images));
  }

  /// As many samples of one class as a pack holds.
  Column single(uint32_t c) const {
    Column column{{c}};
    if (empty(cells_[c])) return column;
    for (Cell room = grid_.whole(); fits(cells_[c], room);) {
      room = minus(room, cells_[c]);
      if (!fits(cells_[c], room)) break;
      column.classes.push_back(c);
    }
    return column;
  }

  /// Solves for these prices; the worth of the dearest pack.
  double solve(std::span<const double> prices) {
    prices_.clear();
    for (size_t c = 0; c < prices.size(); ++c)
      prices_.push_back(empty(cells_[c]) ? 0.0f : static_cast<float>(prices[c]));
    fill_knapsack<float>(grid_, cells_, prices_, values_);
    return static_cast<double>(values_[grid_.index(grid_.whole())]);
  }

  /// The dearest pack with at least one sample of the class; empty if none fits on the grid.
  Column dearest_with(uint32_t c) const {
    if (!fits(cells_[c], grid_.whole())) return {};
    Column column{{c}};
    Cell room = minus(grid_.whole(), cells_[c]);
    for (uint32_t k = 0; k < cells_.size();) {
      const float here = values_[grid_.index(room)];
      if (here <= 0) break;
      if (prices_[k] > 0 && fits(cells_[k], room) &&
          values_[grid_.index(minus(room, cells_[k]))] + prices_[k] == here) {
        column.classes.push_back(k);
        room = minus(room, cells_[k]);
      } else {
        ++k;
      }
    }
    std::sort(column.classes.begin(), column.classes.end());
    return column;
  }

 private:
  static bool empty(const Cell& cell) {
    return cell.tokens == 0 && cell.images == 0 && cell.pairs == 0;
  }
  PackGrid grid_;
  std::vector<Cell> cells_;
  std::vector<float> prices_, values_;
};

/// All packs met so far, none twice.
class Pool {
 public:
  void add(Column column) {
    if (!column.classes.empty() && known_.insert(column.classes).second)
      columns_.push_back(std::move(column));
  }

  /// Lets packs (and surplus) into the basis that save something, until few do. Whether any did.
  bool improve(Simplex& simplex, size_t classes) const {
    bool ever = false;
    for (int pass = 0; pass < kPasses; ++pass) {
      bool entered = false;
      const auto offer = [&](const Column& column) {
        if (simplex.saving(column) <= kSaving) return;
        simplex.enter(column);
        entered = true;
      };
      for (size_t c = 0; c < classes; ++c) offer({{}, static_cast<int>(c)});
      for (size_t j = columns_.size(); j-- > 0;) offer(columns_[j]);
      ever = ever || entered;
      if (!entered) break;
    }
    return ever;
  }

 private:
  static constexpr int kPasses = 8;
  static constexpr double kSaving = 1e-6;
  std::vector<Column> columns_;
  std::set<std::vector<uint32_t>> known_;
};

/// The best dual solution so far. New packs are priced between it and the simplex's own prices,
/// which swing wildly at first (smoothing: Wentges, "Weighted Dantzig-Wolfe decomposition", 1997).
class DualCentre {
 public:
  explicit DualCentre(std::span<const LengthClass> classes)
      : classes_(classes), prices_(classes.size(), 0.0) {}
  std::vector<double> mixed(std::span<const double> own, double weight) const {
    std::vector<double> result;
    for (size_t c = 0; c < own.size(); ++c)
      result.push_back(weight * prices_[c] + (1 - weight) * std::max(own[c], 0.0));
    return result;
  }
  /// `dearest`: worth of the dearest pack at `prices`. Divided by it they are a dual solution.
  void offer(const std::vector<double>& prices, double dearest) {
    double worth = 0;
    for (size_t c = 0; c < prices.size(); ++c)
      worth += prices[c] * static_cast<double>(classes_[c].count);
    if (dearest <= 0 || worth / dearest <= bound_) return;
    bound_ = worth / dearest;
    prices_ = prices;
    for (double& price : prices_) price /= dearest;
  }
  double bound() const { return bound_; }
  const std::vector<double>& prices() const { return prices_; }

 private:
  std::span<const LengthClass> classes_;
  std::vector<double> prices_;
  double bound_ = 0;
};

/// Prices by shares of the capacities, from all tokens to all images.
std::vector<std::vector<double>> plain_prices(std::span<const LengthClass> classes,
                                              const PackLimits& limits) {
  std::vector<std::vector<double>> result;
  for (int eighth = 0; eighth <= (limits.images > 0 ? 8 : 0); ++eighth) {
    auto& prices = result.emplace_back();
    for (const LengthClass& c : classes) {
      const double tokens = static_cast<double>(c.tokens) / limits.tokens;
      const double images = limits.images > 0 ? static_cast<double>(c.images) / limits.images : 0;
      prices.push_back(((8 - eighth) * tokens + eighth * images) / 8);
    }
  }
  return result;
}

/// Packs that fill well, to begin with.
std::vector<Column> greedy_columns(std::span<const LengthClass> classes, const PackLimits& limits) {
  std::vector<uint32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return classes[a].tokens > classes[b].tokens; });
  std::vector<LengthType> types;
  for (const uint32_t c : order)
    types.push_back({classes[c].tokens, classes[c].images, classes[c].count});
  const PackPatterns packs = pack_exact(types, limits);
  std::vector<Column> columns;
  for (size_t p = 0; p < packs.size(); ++p) {
    Column& column = columns.emplace_back();
    for (const uint32_t t : packs.pattern(p)) column.classes.push_back(order[t]);
    std::sort(column.classes.begin(), column.classes.end());
  }
  return columns;
}

}  // namespace

std::vector<LengthClass> merge_lengths(std::span<const LengthType> types, size_t classes,
                                       Rounding rounding) {
  const auto groups = by_images(types);
  const auto count_runs = [&](int64_t loss) {
    size_t runs = 0;
    for (const auto& group : groups)
      cut_runs(types, group, rounding, loss, [&](std::span<const uint32_t>) { ++runs; });
    return runs;
  };
  int64_t low = 0, high = 1;
  while (count_runs(high) > std::max(classes, groups.size()) && high < (int64_t{1} << 60))
    high *= 2;
  if (count_runs(0) <= classes) high = 0;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (count_runs(middle) <= std::max(classes, groups.size()))
      high = middle;
    else
      low = middle + 1;
  }
  std::vector<LengthClass> result;
  for (const auto& group : groups) {
    cut_runs(types, group, rounding, low, [&](std::span<const uint32_t> run) {
      result.push_back(class_of(types, run, rounding));
    });
  }
  return result;
}

LpSolution solve_packing_lp(std::span<const LengthClass> classes, const PackLimits& limits,
                            Rounding rounding) {
  Pricing pricing(classes, limits, rounding);
  std::vector<Column> singles;
  for (uint32_t c = 0; c < classes.size(); ++c) singles.push_back(pricing.single(c));
  Simplex simplex(std::move(singles), classes);
  DualCentre centre(classes);
  for (const auto& prices : plain_prices(classes, limits))
    centre.offer(prices, pricing.solve(prices));
  Pool pool;
  for (Column& column : greedy_columns(classes, limits)) pool.add(std::move(column));
  pool.improve(simplex, classes.size());
  double weight = kSmoothing;
  for (int round = 0; round < kLpRounds; ++round) {
    simplex.refresh_prices();
    const auto prices = centre.mixed(simplex.prices(), weight);
    centre.offer(prices, pricing.solve(prices));
    if (simplex.objective() - centre.bound() <= kGapEnough * simplex.objective()) break;
    for (uint32_t c = 0; c < classes.size(); ++c) pool.add(pricing.dearest_with(c));
    const bool entered = pool.improve(simplex, classes.size());
    if (!entered && weight == 0) break;
    weight = entered ? kSmoothing : 0;
  }
  LpSolution solution{
      .prices = centre.prices(), .packs = simplex.objective(), .bound = centre.bound()};
  for (size_t r = 0; r < classes.size(); ++r) {
    if (simplex.basis()[r].surplus < 0 && simplex.amounts()[r] > kTiny)
      solution.columns.push_back({simplex.basis()[r].classes, simplex.amounts()[r]});
  }
  return solution;
}

}  // namespace mm::data
