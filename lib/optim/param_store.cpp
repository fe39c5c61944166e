#include "lib/optim/param_store.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
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

ParamStore::ParamStore(const model::Model& model, const Precision& precision,
                       std::vector<bool> masters)
    : model_(model),
      precision_(precision),
      has_master_(masters.empty() ? std::vector<bool>(model.params.size(), true)
                                  : std::move(masters)),
      masters_(model.params.size()),
      computes_(model.params.size()),
      leaves_(model.params.size()) {
  MM_CHECK(precision.master == at::kFloat || precision.master == at::kDouble,
           "masters are fp32 or float64, not {}", c10::toString(precision.master));
  MM_CHECK(has_master_.size() == model.params.size(), "{} flags for {} parameters",
           has_master_.size(), model.params.size());
  for (const model::Part part : model::kAllParts) build_part(part);
  set_trainable(std::vector<bool>(model.params.size(), false));
}

void ParamStore::build_part(model::Part part) {
  const at::NoGradGuard no_grad;
  int64_t elements = 0;
  for (const model::ParamSpec& spec : model_.params) {
    if (spec.part == part) elements += aligned(c10::multiply_integers(spec.shape));
  }
  PartBuffer buffer{part, {}, at::zeros({elements}, precision_.compute_of(part))};
  int64_t start = 0;
  for (size_t i = 0; i < model_.params.size(); ++i) {
    const model::ParamSpec& spec = model_.params[i];
    if (spec.part != part) continue;
    const int64_t length = c10::multiply_integers(spec.shape);
    computes_[i] = buffer.compute.narrow(0, start, length).view(spec.shape);
    start += aligned(length);
  }
  allocate_masters(buffer);
  parts_.push_back(std::move(buffer));
}

// One flat buffer for the part's parameters that have a master, in their order.
void ParamStore::allocate_masters(PartBuffer& buffer) {
  const bool shared = precision_.master == precision_.compute_of(buffer.part);
  int64_t elements = 0;
  buffer.whole = true;
  for (size_t i = 0; i < model_.params.size(); ++i) {
    const model::ParamSpec& spec = model_.params[i];
    if (spec.part != buffer.part) continue;
    buffer.whole &= has_master_[i];
    if (has_master_[i]) elements += aligned(c10::multiply_integers(spec.shape));
  }
  buffer.master = shared ? buffer.compute : at::zeros({elements}, precision_.master);
  int64_t start = 0;
  for (size_t i = 0; i < model_.params.size(); ++i) {
    const model::ParamSpec& spec = model_.params[i];
    if (spec.part != buffer.part) continue;
    masters_[i] = computes_[i];
    if (shared || !has_master_[i]) continue;
    const int64_t length = c10::multiply_integers(spec.shape);
    masters_[i] = buffer.master.narrow(0, start, length).view(spec.shape);
    start += aligned(length);
  }
}

void ParamStore::keep_masters(const std::vector<bool>& kept) {
  const at::NoGradGuard no_grad;
  bool fewer = false;
  for (size_t i = 0; i < has_master_.size(); ++i) {
    MM_CHECK(kept.at(i) || !trainable_[i], "{} trains and needs its master", model_.params[i].name);
    fewer |= has_master_[i] && !kept[i];
    has_master_[i] = has_master_[i] && kept[i];
  }
  if (!fewer) return;
  for (PartBuffer& buffer : parts_) {
    const std::vector<at::Tensor> before = masters_;
    allocate_masters(buffer);
    for (size_t i = 0; i < masters_.size(); ++i) {
      if (model_.params[i].part == buffer.part && has_master_[i] &&
          !masters_[i].is_alias_of(before[i]))
        masters_[i].copy_(before[i]);
    }
  }
}

int64_t ParamStore::size_bytes() const {
  int64_t bytes = 0;
  for (const PartBuffer& buffer : parts_) {
    bytes += static_cast<int64_t>(buffer.compute.nbytes());
    if (!buffer.master.is_same(buffer.compute))
      bytes += static_cast<int64_t>(buffer.master.nbytes());
  }
  return bytes;
}

void ParamStore::initialise(uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters_.size(); ++i) {
    const model::InitialDraw draw(model_.params[i], seed);
    // Drawn in the masters' dtype, then rounded: the same numbers whether a part keeps masters.
    if (masters_[i].scalar_type() == precision_.master) {
      draw.fill(masters_[i]);
    } else {
      const at::Tensor wide = at::empty(model_.params[i].shape, precision_.master);
      draw.fill(wide);
      masters_[i].copy_(wide);
    }
  }
  refresh_compute(/*all=*/true);
}

void ParamStore::set_trainable(std::vector<bool> trainable) {
  MM_CHECK(trainable.size() == model_.params.size(), "{} flags for {} parameters", trainable.size(),
           model_.params.size());
  trainable_ = std::move(trainable);
  for (size_t i = 0; i < trainable_.size(); ++i) {
    MM_CHECK(!trainable_[i] || has_master_[i], "{} is to train but has no master",
             model_.params[i].name);
  }
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
  if (!masters_[row].is_alias_of(computes_[row])) computes_[row].copy_(masters_[row]);
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
  const at::NoGradGuard no_grad;
  for (PartBuffer& buffer : parts_) {
    if (all || part_trains(buffer.part)) refresh(buffer);
  }
}

void ParamStore::refresh(PartBuffer& buffer) {
  if (buffer.master.is_same(buffer.compute)) return;
  if (buffer.whole) {
    buffer.compute.copy_(buffer.master);
    return;
  }
  for (size_t i = 0; i < masters_.size(); ++i) {
    if (model_.params[i].part == buffer.part && has_master_[i]) computes_[i].copy_(masters_[i]);
  }
}

}  // namespace mm::optim
