#pragma once
#include <vector>

#include "lib/base/json.h"

namespace mm::data {

/// How unequal a step's ranks are in one quantity: max / mean over the ranks, 1 is even. Over the
/// steps that a report counts.
struct Imbalance {
  double mean = 1, p99 = 1, worst = 1;
};

/// Of one step: max / mean of what its ranks have; 1 if they have nothing.
double max_over_mean(const std::vector<double>& values);
/// Of all steps; of none it is even.
Imbalance summed_up(std::vector<double> ratios);
Json to_json(const Imbalance& imbalance);

}  // namespace mm::data
