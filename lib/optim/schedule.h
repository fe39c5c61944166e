#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace mm::optim {

enum class ScheduleKind { kConstant, kLinear, kCosine, kWsdLinear, kWsdCosine, kWsdSqrt };

/// "constant", "linear", "cosine", "wsd" (linear decay), "wsd_cosine", "wsd_sqrt".
std::optional<ScheduleKind> schedule_kind(std::string_view word);

/// The learning rate of update s = 0, 1, ...: a pure function, so nothing of it is saved and
/// nothing can slip on resume. Warm-up of W steps: base * s / W, or base * (s + 1) / W with
/// `first_step_not_zero`. Then, of N steps in all,
/// - linear, cosine: min + (base - min) * g(p), p = (s - W) / (N - W) capped at 1, g = 1 - p or (1
/// + cos(pi p)) / 2
///   (Loshchilov and Hutter 2017, equation 5);
/// - warm-up-stable-decay: base until N - D, then the same with p = (s - N + D) / D and g = 1 - p,
/// (1 + cos(pi p)) / 2 or
///   1 - sqrt(p) (Haegele et al. 2024).
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double base = 0, min = 0;  ///< rates
  int64_t warmup_steps = 0;  ///< W
  int64_t total_steps = 1;   ///< N
  int64_t decay_steps = 0;   ///< D
  bool first_step_not_zero = false;

  double at(int64_t step) const;
};

}  // namespace mm::optim
