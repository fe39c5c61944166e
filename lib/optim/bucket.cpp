#include "lib/optim/bucket.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "lib/base/error.h"

namespace mm::optim {
namespace {

constexpr int64_t kNeverUsed = -1;

/// For each parameter the number of the first segment that reads it.
std::vector<int64_t> first_uses(const model::Model& model) {
  std::vector<int64_t> uses(model.params.size(), kNeverUsed);
  int64_t number = 0;
  for (const model::Block& block : model.blocks) {
    for (const model::Step& step : block.steps) {
      const auto* segment = std::get_if<model::Segment>(&step);
      if (segment == nullptr) continue;
      for (const model::ParamId id : segment->params) {
        int64_t& use = uses.at(static_cast<size_t>(id));
        if (use == kNeverUsed) use = number;
      }
      ++number;
    }
  }
  return uses;
}

}  // namespace

std::vector<model::ParamId> backward_order(const model::Model& model,
                                           const std::vector<bool>& trainable) {
  MM_CHECK(trainable.size() == model.params.size(), "{} flags for {} parameters", trainable.size(),
           model.params.size());
  const std::vector<int64_t> uses = first_uses(model);
  std::vector<model::ParamId> order;
  for (size_t i = model.params.size(); i > 0; --i) {
    if (trainable[i - 1]) order.push_back(static_cast<model::ParamId>(i - 1));
  }
  std::stable_sort(order.begin(), order.end(), [&](model::ParamId a, model::ParamId b) {
    return uses[static_cast<size_t>(a)] > uses[static_cast<size_t>(b)];
  });
  return order;
}

std::vector<Bucket> make_buckets(const model::Model& model, const std::vector<bool>& trainable,
                                 const BucketOptions& options) {
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(options.accumulate));
  std::vector<Bucket> buckets;
  int64_t elements = 0;
  const auto close = [&] {
    if (!buckets.empty()) buckets.back().flat = at::empty({elements}, options.accumulate);
    elements = 0;
  };
  for (const model::ParamId id : backward_order(model, trainable)) {
    const model::ParamSpec& spec = model.params[static_cast<size_t>(id)];
    if (buckets.empty() || buckets.back().part != spec.part ||
        elements * element_bytes >= options.bucket_bytes) {
      close();
      buckets.push_back({.part = spec.part, .params = {}, .starts = {}, .flat = {}});
    }
    buckets.back().params.push_back(id);
    buckets.back().starts.push_back(elements);
    elements += c10::multiply_integers(spec.shape);
  }
  close();
  return buckets;
}

}  // namespace mm::optim
