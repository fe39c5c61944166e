#include "lib/optim/ema.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"

namespace mm::optim {

std::optional<EmaWarmUp> ema_warm_up(std::string_view word) {
  if (word == "none") return EmaWarmUp::kNone;
  if (word == "ratio") return EmaWarmUp::kRatio;
  if (word == "power") return EmaWarmUp::kPower;
  return std::nullopt;
}

void EmaOptions::check() const {
  if (!(decay >= 0 && decay < 1)) throw UsageError("ema: decay {}, expected 0 <= decay < 1", decay);
  if (!(gamma > 0) || !(power > 0))
    throw UsageError("ema: gamma {} and power {}, expected more than 0", gamma, power);
}

double ema_decay(const EmaOptions& options, int64_t n) {
  const auto step = static_cast<double>(n);
  switch (options.warm_up) {
    case EmaWarmUp::kNone:
      return options.decay;
    case EmaWarmUp::kRatio:
      return std::min(options.decay, (1 + step) / (10 + step));
    case EmaWarmUp::kPower:
      return std::min(options.decay, 1 - std::pow(1 + step / options.gamma, -options.power));
  }
  throw InternalError("warm-up {} is unknown", static_cast<int>(options.warm_up));
}

Ema::Ema(const ParamStore& params, const EmaOptions& options, std::vector<bool> averaged)
    : params_(params), options_(options), averages_(params.model().params.size()) {
  options_.check();
  if (averaged.empty()) averaged = params.trainable();
  MM_CHECK(averaged.size() == averages_.size(), "{} flags for {} parameters", averaged.size(),
           averages_.size());
  for (size_t i = 0; i < averaged.size(); ++i) {
    if (!averaged[i]) continue;
    const at::Tensor master = params.master(static_cast<model::ParamId>(i));
    MM_CHECK(master.scalar_type() == params.precision().master, "{} has no master",
             params.model().params[i].name);
    averages_[i] = master.detach().clone();
    listed_.push_back(averages_[i]);
    masters_.push_back(master);
  }
}

void Ema::update() {
  ++count_;
  if (listed_.empty()) return;
  const at::NoGradGuard no_grad;
  at::_foreach_lerp_(listed_, masters_, 1 - ema_decay(options_, count_));
}

SavedParams::SavedParams(const ParamStore& params, const Ema* ema) : params_(params) {
  const auto count = static_cast<model::ParamId>(params.model().params.size());
  for (model::ParamId id = 0; id < count; ++id) {
    const at::Tensor average = ema != nullptr ? ema->average(id) : at::Tensor();
    values_.push_back(average.defined() ? average : params.master(id).detach());
  }
}

}  // namespace mm::optim
