#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/optim/param_store.h"

namespace mm::optim {

/// How the decay of update n = 1, 2, ... grows to its limit d.
enum class EmaWarmUp {
  kNone,   ///< d from the start
  kRatio,  ///< min(d, (1 + n) / (10 + n)), diffusers' rule
  kPower,  ///< min(d, 1 - (1 + n / gamma)^-power)
};
/// "none", "ratio", "power"; nothing for other words.
std::optional<EmaWarmUp> ema_warm_up(std::string_view word);

struct EmaOptions {
  double decay = 0.9999;
  EmaWarmUp warm_up = EmaWarmUp::kNone;
  double gamma = 1, power = 2.0 / 3;  ///< of kPower: 2/3 for long runs, 3/4 for shorter ones
  /// Throws UsageError, naming the value, unless 0 <= decay < 1, gamma and power are positive.
  void check() const;
};

/// Decay of update n >= 1.
double ema_decay(const EmaOptions& options, int64_t n);

/// Moving average of the masters, in their dtype: a bf16 average at 0.9999 would lose every update.
/// Lies as the masters lie, so that ranks need no communication. Begins as a copy. Raw weights,
/// averages and the count of updates are three separate things to save (field case C42).
class Ema {
 public:
  /// Averages the parameters flagged in `averaged` (empty: the trainable ones), which must have
  /// masters. `params` must outlive it.
  Ema(const ParamStore& params, const EmaOptions& options, std::vector<bool> averaged = {});

  /// After an optimizer update: average <- d average + (1 - d) master.
  void update();

  /// In the parameter's shape, a view that may be written when a state is loaded; undefined for a
  /// parameter without an average, whose value is the master.
  at::Tensor average(model::ParamId id) const { return averages_.at(static_cast<size_t>(id)); }
  /// Updates so far; set when a state is loaded.
  int64_t count() const { return count_; }
  void set_count(int64_t count) { count_ = count; }
  const EmaOptions& options() const { return options_; }

 private:
  const ParamStore& params_;
  EmaOptions options_;
  int64_t count_ = 0;
  std::vector<at::Tensor> averages_;          // [params]
  std::vector<at::Tensor> listed_, masters_;  // the defined ones, side by side
};

/// The weights of a run in training as a checkpoint has them, to draw and to measure with: averages
/// where there are some, else masters, else what the store has; in the dtype they are kept in, so
/// nothing is rounded and nothing copied.
class SavedParams final : public model::ParamView {
 public:
  /// `ema`: null without averages.
  SavedParams(const ParamStore& params, const Ema* ema);
  at::Tensor get(model::ParamId id) const override { return values_.at(static_cast<size_t>(id)); }
  const model::Adapter* adapter(model::ParamId id) const override { return params_.adapter(id); }

 private:
  const ParamStore& params_;
  std::vector<at::Tensor> values_;
};

}  // namespace mm::optim
