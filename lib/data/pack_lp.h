#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/pack_patterns.h"

namespace mm::data {

/// Which way sizes are rounded when lengths are merged into classes and onto the grid of the
/// knapsack: up gives packs that are possible, down gives a bound that no packing beats.
enum class Rounding { kUp, kDown };

/// Like lengths taken together: each of its types counts as one of the class's size.
struct LengthClass {
  int32_t tokens = 0, images = 0;
  uint64_t count = 0;
  std::vector<uint32_t> types;  ///< longest first
};
/// At most `classes` of them (but one per image count at least), such that little is lost by
/// rounding. Types of one class have equal image counts. O(types log).
std::vector<LengthClass> merge_lengths(std::span<const LengthType> types, size_t classes,
                                       Rounding rounding);

/// A content of classes and how many packs should have it.
struct LpColumn {
  std::vector<uint32_t> classes;  ///< a class as often as it occurs
  double packs = 0;
};
/// Solution of the covering problem "fewest packs that hold every class `count` times" with
/// fractions of packs allowed.
struct LpSolution {
  std::vector<LpColumn> columns;  ///< at most one per class
  std::vector<double> prices;     ///< of a sample of each class, in packs: the dual solution, >= 0
  double packs = 0;               ///< of the columns
  double bound = 0;               ///< of the prices: no fractional packing has fewer
};
/// Column generation (Gilmore and Gomory, "A linear programming approach to the cutting-stock
/// problem", 1961): revised simplex with a dense inverse; new columns from a knapsack over all
/// capacities, solved by dynamic programming on a grid. Ends when the bound of the prices lies
/// within 0.02 % or after kLpRounds. Deterministic: one thread, no library beyond IEEE arithmetic.
LpSolution solve_packing_lp(std::span<const LengthClass> classes, const PackLimits& limits,
                            Rounding rounding);
inline constexpr int kLpRounds = 150;

}  // namespace mm::data
