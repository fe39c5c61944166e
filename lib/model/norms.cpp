#include "lib/model/norms.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/rms_norm.h"
#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kBlockRows = kernels::kRmsNormBlockRows;

int64_t blocks_of(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Pointer to row `row` of a tensor that may be absent.
template <typename T>
const T* row_of(const at::Tensor& x, int64_t row, int64_t cols) {
  return x.defined() ? in<T>(x) + row * cols : nullptr;
}

/// `sum` is undefined without a residual.
struct Normed {
  at::Tensor sum, y, r;
};

Normed norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& w, double eps) {
  const int64_t cols = x.size(-1), rows = cols == 0 ? 0 : x.numel() / cols;
  Normed n{residual.defined() ? at::empty_like(x) : at::Tensor(), at::empty_like(x),
           at::empty({rows}, x.options().dtype(accumulate_type(x)))};
  for_storage_of(x, [&]<typename T>() {
    at::parallel_for(0, rows, kBlockRows, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * cols;
      kernels::rms_norm_forward<T>({end - begin, cols},
                                   {.x = in<T>(x) + at,
                                    .residual = row_of<T>(residual, begin, cols),
                                    .w = in<T>(w),
                                    .eps = eps,
                                    .sum = n.sum.defined() ? out<T>(n.sum) + at : nullptr,
                                    .y = out<T>(n.y) + at,
                                    .r = out<kernels::Acc<T>>(n.r) + begin});
    });
  });
  return n;
}

/// Saved: what was normalised, the weight, 1 / rms.
variable_list norm_rows_backward(const variable_list& saved, const at::Tensor& dy,
                                 const at::Tensor& d_sum) {
  const at::Tensor &s = saved[0], &w = saved[1], &r = saved[2];
  const int64_t cols = s.size(-1), rows = r.size(0), blocks = blocks_of(rows);
  at::Tensor dx = at::empty_like(s), partial = at::zeros({blocks, cols}, r.options());
  for_storage_of(s, [&]<typename T>() {
    using A = kernels::Acc<T>;
    at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t row = block * kBlockRows, count = std::min(kBlockRows, rows - row),
                      at = row * cols;
        kernels::rms_norm_backward<T>({count, cols}, {.dy = in<T>(dy) + at,
                                                      .d_sum = row_of<T>(d_sum, row, cols),
                                                      .s = in<T>(s) + at,
                                                      .w = in<T>(w),
                                                      .r = in<A>(r) + row,
                                                      .dx = out<T>(dx) + at,
                                                      .dw = out<A>(partial) + block * cols});
      }
    });
  });
  at::Tensor dw = at::zeros({cols}, r.options());
  for (int64_t block = 0; block < blocks; ++block) dw.add_(partial[block]);
  return {dx, dw.to(w.scalar_type())};
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Variable forward(AutogradContext* context, const Variable& given, const Variable& weight,
                          double eps) {
    const at::Tensor x = given.contiguous(), w = weight.contiguous();
    const Normed n = norm_rows(x, {}, w, eps);
    context->save_for_backward({x, w, n.r});
    return n.y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto both = norm_rows_backward(context->get_saved_variables(), gradients[0].contiguous(), {});
    both.emplace_back();
    return both;
  }
};

struct ResidualRmsNorm : torch::autograd::Function<ResidualRmsNorm> {
  static variable_list forward(AutogradContext* context, const Variable& x,
                               const Variable& residual, const Variable& weight, double eps) {
    const at::Tensor w = weight.contiguous();
    const Normed n = norm_rows(x.contiguous(), residual.contiguous(), w, eps);
    context->save_for_backward({n.sum, w, n.r});
    context->set_materialize_grads(false);
    return {n.sum, n.y};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor d_sum = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
    if (!gradients[1].defined()) return {d_sum, d_sum, Variable(), Variable()};
    const auto both = norm_rows_backward(saved, gradients[1].contiguous(), d_sum);
    return {both[0], both[0], both[1], Variable()};
  }
};

}  // namespace

at::Tensor rms_norm_reference(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor v = x.to(accumulate_type(x));
  const at::Tensor scale = at::rsqrt(v.square().mean(-1, /*keepdim=*/true) + eps);
  return (v * scale).to(x.scalar_type()) * weight;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  MM_CHECK(x.dim() > 0 && weight.dim() == 1 && weight.size(0) == x.size(-1),
           "weight of {} for rows of {}", weight.numel(), x.size(-1));
  if (!has_row_kernel(x) || weight.scalar_type() != x.scalar_type())
    return rms_norm_reference(x, weight, eps);
  return RmsNorm::apply(x, weight, eps);
}

SumAndNorm residual_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                             const at::Tensor& weight, double eps) {
  MM_CHECK(x.sizes() == residual.sizes() && weight.dim() == 1 && weight.size(0) == x.size(-1),
           "residual of {} elements and weight of {} for rows of {}", residual.numel(),
           weight.numel(), x.size(-1));
  if (!has_row_kernel(x) || residual.scalar_type() != x.scalar_type() ||
      weight.scalar_type() != x.scalar_type()) {
    const at::Tensor sum = x + residual;
    return {sum, rms_norm_reference(sum, weight, eps)};
  }
  const auto both = ResidualRmsNorm::apply(x, residual, weight, eps);
  return {both[0], both[1]};
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

}  // namespace mm::model
