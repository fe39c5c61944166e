#include "lib/optim/flat_grad_sink.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"

namespace mm::optim {
namespace {

constexpr int64_t kAlignElements = 16;

int64_t padded_elements(const model::ParamSpec& spec) {
  int64_t count = 1;
  for (int64_t size : spec.shape) count *= size;
  return (count + kAlignElements - 1) / kAlignElements * kAlignElements;
}

/// Trainable parameters in reverse order, cut where the part changes or the size is reached.
std::vector<Bucket> cut(const model::Model& model, const std::vector<bool>& trainable,
                        int64_t bucket_elements) {
  std::vector<Bucket> buckets;
  int64_t filled = 0;
  for (size_t i = model.params.size(); i-- > 0;) {
    if (!trainable[i]) continue;
    const bool fits = !buckets.empty() && filled < bucket_elements &&
                      model.params[static_cast<size_t>(buckets.back().params.back())].part ==
                          model.params[i].part;
    if (!fits) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().params.push_back(static_cast<model::ParamId>(i));
    buckets.back().offset.push_back(filled);
    filled += padded_elements(model.params[i]);
  }
  return buckets;
}

}  // namespace

FlatGradSink::FlatGradSink(const model::Model& model, const std::vector<bool>& trainable,
                           const BucketOptions& options)
    : buckets_(cut(
          model, trainable,
          std::max<int64_t>(1, options.bucket_bytes /
                                   static_cast<int64_t>(c10::elementSize(options.accumulate))))),
      views_(model.params.size()) {
  MM_CHECK(trainable.size() == model.params.size(), "{} flags for {} parameters", trainable.size(),
           model.params.size());
  for (Bucket& bucket : buckets_) {
    const auto last = static_cast<size_t>(bucket.params.back());
    bucket.flat =
        at::zeros({bucket.offset.back() + padded_elements(model.params[last])}, options.accumulate);
    for (size_t k = 0; k < bucket.params.size(); ++k) {
      const auto id = static_cast<size_t>(bucket.params[k]);
      const std::vector<int64_t>& shape = model.params[id].shape;
      views_[id] =
          bucket.flat.narrow(0, bucket.offset[k], c10::multiply_integers(shape)).view(shape);
    }
  }
}

void FlatGradSink::add(model::ParamId id, const at::Tensor& grad) {
  const at::NoGradGuard no_grad;
  const at::Tensor& view = views_.at(static_cast<size_t>(id));
  MM_CHECK(view.defined(), "a gradient arrived for frozen parameter {}", id);
  view.add_(grad);
}

void FlatGradSink::zero() {
  const at::NoGradGuard no_grad;
  for (const Bucket& bucket : buckets_) bucket.flat.zero_();
}

}  // namespace mm::optim
