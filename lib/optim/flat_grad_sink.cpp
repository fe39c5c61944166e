#include "lib/optim/flat_grad_sink.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::optim {

FlatGradSink::FlatGradSink(const model::Model& model, const std::vector<bool>& trainable,
                           const BucketOptions& options)
    : model_(model),
      buckets_(make_buckets(model, trainable, options)),
      views_(model.params.size()),
      contributions_(model.params.size(), 0) {
  for (const Bucket& bucket : buckets_) {
    for (size_t i = 0; i < bucket.params.size(); ++i) {
      const auto row = static_cast<size_t>(bucket.params[i]);
      const std::vector<int64_t>& shape = model.params[row].shape;
      views_[row] =
          bucket.flat.narrow(0, bucket.starts[i], c10::multiply_integers(shape)).view(shape);
    }
  }
}

void FlatGradSink::add(model::ParamId id, const at::Tensor& grad) {
  const auto row = static_cast<size_t>(id);
  const at::Tensor& sum = views_.at(row);
  MM_CHECK(sum.defined(), "{} is frozen and takes no gradient", model_.params[row].name);
  ++contributions_[row];
  if (!grad.defined()) return;
  MM_CHECK(grad.sizes() == sum.sizes(), "{}: gradient of shape [{}], parameter of [{}]",
           model_.params[row].name, fmt::join(grad.sizes(), ", "), fmt::join(sum.sizes(), ", "));
  const at::NoGradGuard no_grad;
  sum.add_(grad);
}

void FlatGradSink::zero() {
  for (const Bucket& bucket : buckets_) bucket.flat.zero_();
  std::fill(contributions_.begin(), contributions_.end(), 0);
}

}  // namespace mm::optim
