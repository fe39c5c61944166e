#include "lib/data/imbalance.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace mm::data {

double max_over_mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum == 0) return 1;
  return *std::max_element(values.begin(), values.end()) * static_cast<double>(values.size()) / sum;
}

Imbalance summed_up(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const auto last = static_cast<double>(ratios.size() - 1);
  return {std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size()),
          ratios[static_cast<size_t>(0.99 * last)], ratios.back()};
}

Json to_json(const Imbalance& imbalance) {
  return {{"mean", imbalance.mean}, {"p99", imbalance.p99}, {"worst", imbalance.worst}};
}

}  // namespace mm::data
