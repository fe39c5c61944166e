#include "lib/run/activation_watch.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace mm::run {

ActivationWatch::ActivationWatch(const model::Model& model) : model_(model) {}

void ActivationWatch::watch(bool on) {
  const std::lock_guard lock(mutex_);
  on_ = on;
  sums_.assign(model_.slots.size(), {});
}

void ActivationWatch::saw(model::Slot slot, const at::Tensor& value) {
  if (slot == model_.loss_slot || slot == model_.logits_slot || slot == model_.sample_losses_slot ||
      !value.defined() || !value.is_floating_point() || value.numel() == 0)
    return;
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  const at::NoGradGuard no_grad;
  const at::Tensor wide = value.to(value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const auto [variance, mean] = at::var_mean(wide, /*unbiased=*/false);
  const auto n = static_cast<double>(value.numel());
  const auto m = mean.item<double>();
  Sums& sums = sums_[static_cast<size_t>(slot)];
  sums.count += n;
  sums.sum += n * m;
  sums.squares += n * (variance.item<double>() + m * m);
}

std::map<std::string, Moments> ActivationWatch::moments(dist::Group& control) {
  const std::lock_guard lock(mutex_);
  on_ = false;
  sums_.resize(model_.slots.size());
  const auto rows = static_cast<int64_t>(sums_.size());
  const at::Tensor all = at::empty({rows, 3}, at::kDouble);
  auto table = all.accessor<double, 2>();
  for (int64_t slot = 0; slot < rows; ++slot) {
    const Sums& sums = sums_[static_cast<size_t>(slot)];
    table[slot][0] = sums.count, table[slot][1] = sums.sum, table[slot][2] = sums.squares;
  }
  control.all_reduce_sum(all);
  std::map<std::string, Moments> moments;
  for (int64_t slot = 0; slot < rows; ++slot) {
    if (table[slot][0] == 0) continue;
    const double mean = table[slot][1] / table[slot][0];
    moments[model_.slots[static_cast<size_t>(slot)]] = {
        mean, std::max(0.0, table[slot][2] / table[slot][0] - mean * mean)};
  }
  return moments;
}

}  // namespace mm::run
