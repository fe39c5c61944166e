#include "lib/optim/param_store.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "lib/base/error.h"
#include "lib/model/init_params.h"

namespace mm::optim {
namespace {

constexpr int64_t kAlignElements =
    16;  // 64 bytes of fp32: vector loads never straddle two parameters

int64_t element_count(const model::ParamSpec& spec) {
  int64_t count = 1;
  for (int64_t size : spec.shape) count *= size;
  return count;
}

/// One flat buffer with a view a parameter.
std::vector<at::Tensor> allocate(const model::Model& model, at::ScalarType dtype) {
  std::vector<int64_t> offset;
  int64_t total = 0;
  for (const model::ParamSpec& spec : model.params) {
    offset.push_back(total);
    total += (element_count(spec) + kAlignElements - 1) / kAlignElements * kAlignElements;
  }
  const at::Tensor flat = at::zeros({total}, dtype);
  std::vector<at::Tensor> views;
  for (size_t i = 0; i < model.params.size(); ++i) {
    views.push_back(
        flat.narrow(0, offset[i], element_count(model.params[i])).view(model.params[i].shape));
  }
  return views;
}

}  // namespace

ParamStore::ParamStore(const model::Model& model, Precision precision)
    : model_(model),
      precision_(precision),
      masters_(allocate(model, precision.master)),
      compute_(precision.master == precision.compute ? masters_
                                                     : allocate(model, precision.compute)),
      leaves_(masters_.size()) {
  set_trainable(std::vector<bool>(masters_.size(), true));
}

void ParamStore::initialise(uint64_t seed) {
  const at::NoGradGuard no_grad;
  at::parallel_for(0, static_cast<int64_t>(masters_.size()), 1, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad_here;
    for (int64_t i = begin; i < end; ++i) {
      masters_[static_cast<size_t>(i)].copy_(
          model::initial_value(model_.params[static_cast<size_t>(i)], seed));
    }
  });
  refresh_compute(/*all=*/true);
}

void ParamStore::set(model::ParamId id, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  const at::Tensor& master = masters_.at(static_cast<size_t>(id));
  MM_CHECK(value.sizes() == master.sizes(), "{}: shape [{}] given, [{}] declared",
           model_.params[static_cast<size_t>(id)].name, fmt::join(value.sizes(), ", "),
           fmt::join(master.sizes(), ", "));
  master.copy_(value);
}

void ParamStore::refresh_compute(bool all) {
  if (precision_.master == precision_.compute) return;
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters_.size(); ++i) {
    if (all || trainable_[i]) compute_[i].copy_(masters_[i]);
  }
}

void ParamStore::set_trainable(const std::vector<bool>& flags) {
  MM_CHECK(flags.size() == masters_.size(), "{} flags for {} parameters", flags.size(),
           masters_.size());
  trainable_ = flags;
  // A detached view is a leaf of its own over the same storage.
  for (size_t i = 0; i < leaves_.size(); ++i)
    leaves_[i] = compute_[i].detach().requires_grad_(trainable_[i]);
}

}  // namespace mm::optim
