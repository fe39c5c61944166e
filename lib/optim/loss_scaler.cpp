#include "lib/optim/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"

namespace mm::optim {
namespace {

constexpr double kLargest = 1 << 24, kSmallest = 1.0 / (1 << 24);

}  // namespace

LossScaler::LossScaler(double initial_scale, int64_t growth_steps)
    : state_{initial_scale, 0}, growth_steps_(growth_steps) {
  int exponent = 0;
  if (!(initial_scale > 0) || std::frexp(initial_scale, &exponent) != 0.5)
    throw UsageError("loss scale {}; expected a power of two", initial_scale);
}

bool LossScaler::at_smallest() const { return state_.scale <= kSmallest; }

void LossScaler::step_done(bool overflow) {
  if (overflow) {
    state_ = {std::max(kSmallest, state_.scale / 2), 0};
    return;
  }
  if (growth_steps_ == 0 || ++state_.good_steps < growth_steps_) return;
  state_ = {std::max(state_.scale, std::min(kLargest, state_.scale * 2)), 0};
}

}  // namespace mm::optim
