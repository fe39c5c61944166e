#include "lib/model/cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::ScalarType sum_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// Loss and, where wanted, the gradients of its plain sum.
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

// One chunk: adds its loss and gradients.
void add_chunk(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
               const RowTerms& rows, int64_t begin, Sums& sums) {
  at::Tensor logits = at::mm(hidden, weight.t()).to(sum_type(hidden));
  const at::Tensor column = targets.unsqueeze(1);
  const at::Tensor highest = std::get<0>(logits.max(1, /*keepdim=*/true));
  const at::Tensor target_logit = logits.gather(1, column);
  at::Tensor odds = logits.sub_(highest).exp_();
  const at::Tensor total = odds.sum(1, /*keepdim=*/true);
  const at::Tensor losses = (total.log() + highest - target_logit).squeeze(1);
  if (rows.losses.defined()) at::Tensor(rows.losses).copy_(losses);
  sums.loss += (rows.weights.defined() ? losses * rows.weights : losses).sum();
  if (!sums.want_hidden && !sums.want_weight) return;
  odds.div_(total);
  odds.scatter_add_(1, column, at::full_like(target_logit, -1));
  if (rows.weights.defined()) odds.mul_(rows.weights.unsqueeze(1));
  const at::Tensor d_logits = odds.to(hidden.scalar_type());
  if (sums.want_hidden)
    sums.d_hidden.narrow(0, begin, hidden.size(0)).copy_(at::mm(d_logits, weight));
  if (!sums.want_weight) return;
  const at::Tensor product = at::mm(d_logits.t(), hidden);
  sums.d_weight = sums.d_weight.defined() ? sums.d_weight.to(sum_type(hidden)) + product : product;
}

Sums sum_chunks(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                const RowTerms& terms, Sums sums, int64_t rows_at_once) {
  sums.loss = at::zeros({}, hidden.options().dtype(sum_type(hidden)));
  if (sums.want_hidden) sums.d_hidden = at::empty_like(hidden);
  for (int64_t begin = 0; begin < hidden.size(0); begin += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, hidden.size(0) - begin);
    add_chunk(hidden.narrow(0, begin, rows), weight, targets.narrow(0, begin, rows),
              narrow(terms, begin, rows), begin, sums);
  }
  if (sums.want_weight && !sums.d_weight.defined()) sums.d_weight = at::zeros_like(weight);
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
    return sums.loss;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto scaled = [&](const at::Tensor& sum) {
      return sum.defined() ? sum * gradients[0].to(sum.scalar_type()) : Variable();
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
  const at::Tensor logits = at::linear(hidden, weight).to(sum_type(hidden));
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
}

}  // namespace mm::model
