#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace mm::optim {

/// The shape of the learning rate behind the warm-up. WSD is warm-up, stable, decay: constant until
/// `decay_steps` before the end.
enum class ScheduleKind { kConstant, kLinear, kCosine, kWsdLinear, kWsdCosine, kWsdSqrt };

/// "constant", "linear", "cosine", "wsd" (= "wsd_linear"), "wsd_cosine", "wsd_one_minus_sqrt";
/// nothing for other words.
std::optional<ScheduleKind> schedule_kind(std::string_view word);

/// Learning rate as a pure function of the step: nothing to save, a resumed run goes on to the bit.
/// Update k (from 0) uses at(k). With W, N, D = warmup_steps, total_steps, decay_steps:
///   s < W      base * s / W, or base * (s + 1) / W with `first_step_not_zero`
///   cosine     min + (base - min) * (1 + cos(pi p)) / 2,   p = (s - W) / (N - W) capped at 1
///   linear     min + (base - min) * (1 - p)
///   WSD        base for s < N - D, then min + (base - min) * g(q), q = (s - N + D) / D capped at
///   1;
///              g = 1 - q, (1 + cos(pi q)) / 2, or 1 - sqrt(q)
/// Behind N the last value stays.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double base = 0;
  double min = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;
  int64_t decay_steps = 0;  ///< WSD only
  bool first_step_not_zero = false;

  /// `step` >= 0. O(1).
  double at(int64_t step) const;
  /// Throws UsageError naming the value that cannot be: negative rates or steps, min above base,
  /// warm-up (and decay) longer than the run.
  void check() const;
};

}  // namespace mm::optim
