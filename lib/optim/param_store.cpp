#include "lib/optim/param_store.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <utility>

#include "lib/base/error.h"
#include "lib/model/initial_draw.h"

namespace mm::optim {
namespace {

// Parameters start on multiples of this many elements: 64 bytes even in bf16, so that matrix
// products see aligned rows.
constexpr int64_t kAlign = 32;

int64_t aligned(int64_t elements) { return (elements + kAlign - 1) / kAlign * kAlign; }

}  // namespace

ParamStore::ParamStore(const model::Model& model, const Precision& precision)
    : model_(model),
      precision_(precision),
      masters_(model.params.size()),
      computes_(model.params.size()),
      leaves_(model.params.size()) {
  MM_CHECK(precision.master == at::kFloat || precision.master == at::kDouble,
           "masters are fp32 or float64, not {}", c10::toString(precision.master));
  for (const model::Part part :
       {model::Part::kVision, model::Part::kProjector, model::Part::kLanguage})
    build_part(part);
  set_trainable(std::vector<bool>(model.params.size(), false));
}

void ParamStore::build_part(model::Part part) {
  const at::NoGradGuard no_grad;
  int64_t elements = 0;
  for (const model::ParamSpec& spec : model_.params) {
    if (spec.part == part) elements += aligned(c10::multiply_integers(spec.shape));
  }
  PartBuffer buffer{part, at::zeros({elements}, precision_.master), {}};
  const bool shared = precision_.master == precision_.compute;
  buffer.compute = shared ? buffer.master : at::zeros({elements}, precision_.compute);
  int64_t start = 0;
  for (size_t i = 0; i < model_.params.size(); ++i) {
    const model::ParamSpec& spec = model_.params[i];
    if (spec.part != part) continue;
    const int64_t length = c10::multiply_integers(spec.shape);
    masters_[i] = buffer.master.narrow(0, start, length).view(spec.shape);
    computes_[i] = buffer.compute.narrow(0, start, length).view(spec.shape);
    start += aligned(length);
  }
  parts_.push_back(std::move(buffer));
}

void ParamStore::initialise(uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters_.size(); ++i)
    model::InitialDraw(model_.params[i], seed).fill(masters_[i]);
  refresh_compute(/*all=*/true);
}

void ParamStore::set_trainable(std::vector<bool> trainable) {
  MM_CHECK(trainable.size() == model_.params.size(), "{} flags for {} parameters", trainable.size(),
           model_.params.size());
  trainable_ = std::move(trainable);
  for (size_t i = 0; i < leaves_.size(); ++i) {
    leaves_[i] = computes_[i].detach();
    leaves_[i].requires_grad_(trainable_[i]);
  }
}

void ParamStore::set(model::ParamId id, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  const size_t row = static_cast<size_t>(id);
  if (value.sizes() != masters_.at(row).sizes()) {
    throw UsageError("{} has shape [{}], but the model expects [{}]", model_.params[row].name,
                     fmt::join(value.sizes(), ", "), fmt::join(masters_[row].sizes(), ", "));
  }
  masters_[row].copy_(value);
  if (precision_.compute != precision_.master) computes_[row].copy_(masters_[row]);
}

void ParamStore::set(std::string_view name, const at::Tensor& value) {
  set(model::find_param(model_, name), value);
}

bool ParamStore::part_trains(model::Part part) const {
  for (size_t i = 0; i < trainable_.size(); ++i) {
    if (trainable_[i] && model_.params[i].part == part) return true;
  }
  return false;
}

void ParamStore::refresh_compute(bool all) {
  if (precision_.compute == precision_.master) return;
  const at::NoGradGuard no_grad;
  for (PartBuffer& buffer : parts_) {
    if (all || part_trains(buffer.part)) buffer.compute.copy_(buffer.master);
  }
}

}  // namespace mm::optim
