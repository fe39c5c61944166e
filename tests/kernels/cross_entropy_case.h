#pragma once
#include <functional>

#include "kernels/cross_entropy.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename T>
using CrossEntropyTwin = std::function<void(Shape, const CrossEntropyRows<T>&)>;

/// Loss and gradient, in place as the loss of a model uses it.
template <typename T>
double cross_entropy_error(const CrossEntropyTwin<T>& twin, Shape shape, bool with_weights) {
  const int64_t n = shape.rows * shape.cols;
  const auto logits = draw<T>(n, 1, -30, 30), weights = draw<Acc<T>>(shape.rows, 2, 0, 1);
  std::vector<int64_t> targets;
  for (int64_t row = 0; row < shape.rows; ++row) targets.push_back(row * 7919 % shape.cols);
  std::vector<double> loss(shape.rows), d_logits(n);
  cross_entropy_rows_reference(shape, {.logits = logits.data(),
                                       .targets = targets.data(),
                                       .weights = with_weights ? weights.data() : nullptr,
                                       .loss = loss.data(),
                                       .d_logits = d_logits.data()});
  auto tlogits = rounded<T>(logits);
  const auto tweights = rounded<Acc<T>>(weights);
  std::vector<Acc<T>> tloss(shape.rows);
  twin(shape, {.logits = tlogits.data(),
               .targets = targets.data(),
               .weights = with_weights ? tweights.data() : nullptr,
               .loss = tloss.data(),
               .d_logits = tlogits.data()});
  return std::max(worst_error(tloss, loss), worst_error(tlogits, d_logits));
}

}  // namespace mm::kernels::test
