#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/element.h"
#include "lib/base/random.h"

// What the shared tests of the fused ops have in common. A twin is a function that takes host
// arrays; the CPU twin is one as it is, a CUDA twin is wrapped: by a copy to the device and back
// (device_check), or by threads played on the CPU (cuda_on_cpu.h).
namespace mm::kernels::test {

/// Error that a twin may have, as a share of the largest value of each result.
template <typename T>
inline constexpr double kTolerance = 2e-6;
template <>
inline constexpr double kTolerance<double> = 1e-13;
template <>
inline constexpr double kTolerance<Bf16> = 8e-3;  // two roundings of 2^-8

template <typename T>
std::vector<T> rounded(const std::vector<double>& values) {
  std::vector<T> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) store(static_cast<Acc<T>>(values[i]), out[i]);
  return out;
}
template <typename T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) out[i] = load(values[i]);
  return out;
}

/// Seeded numbers in [low, high) that T holds exactly, so that reference and twin see the same.
template <typename T>
std::vector<double> draw(int64_t count, uint64_t seed, double low = -2, double high = 2) {
  const Philox random(seed, "twin case");
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * random.uniform(i);
  return widened(rounded<T>(values));
}

/// The largest difference as a share of the largest value wanted; infinity where `got` is no
/// number.
template <typename T>
double worst_error(const std::vector<T>& got, const std::vector<double>& want) {
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(static_cast<double>(load(got[i])) - want[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

}  // namespace mm::kernels::test
