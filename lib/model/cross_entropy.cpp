#include "lib/model/cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "lib/model/products.h"
#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Loss and, where wanted, the gradients of its plain sum in the type of the products, which holds
/// them: fp16 would not, before the loss scale is on them (nor the scale itself, from 65520 on).
struct Sums {
  at::Tensor loss, d_hidden, d_weight;
  bool want_hidden = false, want_weight = false;
};

RowTerms narrow(const RowTerms& rows, int64_t begin, int64_t count) {
  const auto cut = [&](const at::Tensor& t) {
    return t.defined() ? t.narrow(0, begin, count) : at::Tensor();
  };
  return {cut(rows.weights), cut(rows.losses)};
}

// Turns logits into their gradient and returns the rows' losses, without weights.
at::Tensor softmax_rows(const at::Tensor& logits, const at::Tensor& targets,
                        const at::Tensor& weights, bool want_gradient) {
  at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(accumulate_type(logits)));
  const int64_t cols = logits.size(1);
  for_storage_of(logits, [&]<typename T>() {
    using A = kernels::Acc<T>;
    at::parallel_for(0, logits.size(0), 1, [&](int64_t begin, int64_t end) {
      kernels::cross_entropy_rows<T>(
          {end - begin, cols},
          {.logits = in<T>(logits) + begin * cols,
           .targets = in<int64_t>(targets) + begin,
           .weights = weights.defined() ? in<A>(weights) + begin : nullptr,
           .loss = out<A>(losses) + begin,
           .d_logits = want_gradient ? out<T>(logits) + begin * cols : nullptr});
    });
  });
  return losses;
}

// One chunk: adds its loss and gradients. `hidden` and `weight` are in the type of the products.
void add_chunk(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
               const RowTerms& rows, int64_t begin, Sums& sums) {
  const bool want_gradient = sums.want_hidden || sums.want_weight;
  const at::Tensor d_logits = at::mm(hidden, weight.t());
  const at::Tensor losses = softmax_rows(d_logits, targets, rows.weights, want_gradient);
  if (rows.losses.defined()) at::Tensor(rows.losses).copy_(losses);
  sums.loss += (rows.weights.defined() ? losses * rows.weights : losses).sum();
  if (sums.want_hidden)
    sums.d_hidden.narrow(0, begin, hidden.size(0)).copy_(at::mm(d_logits, weight));
  if (!sums.want_weight) return;
  if (sums.d_weight.defined() && sums.d_weight.scalar_type() == hidden.scalar_type()) {
    sums.d_weight.addmm_(d_logits.t(), hidden);
    return;
  }
  const at::Tensor product = at::mm(d_logits.t(), hidden);
  sums.d_weight =
      sums.d_weight.defined() ? sums.d_weight.to(accumulate_type(hidden)) + product : product;
}

Sums sum_chunks(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& given_targets,
                const RowTerms& given, Sums sums, int64_t rows_at_once) {
  MM_CHECK(hidden.device().is_cpu(), "linear_cross_entropy has no twin for {}",
           c10::DeviceTypeName(hidden.device().type()));
  const bool widen = !has_row_kernel(hidden) || widens_products(hidden.scalar_type());
  const at::Tensor factor = widen ? weight.to(at::kFloat) : weight;
  const at::Tensor targets = given_targets.contiguous();
  const RowTerms terms{given.weights.defined() ? given.weights.contiguous() : given.weights,
                       given.losses};
  sums.loss = at::zeros({}, hidden.options().dtype(accumulate_type(hidden)));
  if (sums.want_hidden)
    sums.d_hidden = at::empty_like(hidden, hidden.options().dtype(factor.scalar_type()));
  for (int64_t begin = 0; begin < hidden.size(0); begin += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, hidden.size(0) - begin);
    const at::Tensor chunk = hidden.narrow(0, begin, rows);
    add_chunk(widen ? chunk.to(at::kFloat) : chunk, factor, targets.narrow(0, begin, rows),
              narrow(terms, begin, rows), begin, sums);
  }
  if (sums.want_weight && !sums.d_weight.defined()) sums.d_weight = at::zeros_like(factor);
  return sums;
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static Variable forward(AutogradContext* context, const Variable& hidden, const Variable& weight,
                          const at::Tensor& targets, const RowTerms& rows, int64_t rows_at_once) {
    const Sums sums =
        sum_chunks(hidden, weight, targets, rows,
                   {.want_hidden = hidden.requires_grad(), .want_weight = weight.requires_grad()},
                   rows_at_once);
    context->save_for_backward({sums.d_hidden, sums.d_weight});
    context->saved_data["dtype"] = hidden.scalar_type();
    return sums.loss;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    // Multiplied in the type of the loss, then rounded once.
    const auto scaled = [&](const at::Tensor& sum) {
      return sum.defined() ? (sum * gradients[0]).to(dtype) : Variable();
    };
    return {scaled(saved[0]), scaled(saved[1]), Variable(), Variable(), Variable()};
  }
};

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                const at::Tensor& targets, int64_t max_logit_elements,
                                const RowTerms& rows) {
  MM_CHECK(hidden.size(0) == targets.size(0), "{} rows, {} targets", hidden.size(0),
           targets.size(0));
  const int64_t rows_at_once = std::max<int64_t>(1, max_logit_elements / weight.size(0));
  if (!at::GradMode::is_enabled())
    return sum_chunks(hidden, weight, targets, rows, {}, rows_at_once).loss;
  // As one struct: apply() takes no undefined tensors.
  return LinearCrossEntropy::apply(hidden, weight, targets, rows, rows_at_once);
}

at::Tensor linear_cross_entropy_reference(const at::Tensor& hidden, const at::Tensor& weight,
                                          const at::Tensor& targets) {
  const at::Tensor logits = at::linear(hidden, weight).to(accumulate_type(hidden));
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
}

}  // namespace mm::model
