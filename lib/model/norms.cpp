#include "lib/model/norms.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Rows whose weight gradient is summed in one go. Sums of blocks are added in order, so that the
// thread count does not show in the bits.
constexpr int64_t kBlockRows = 64;

int64_t blocks_of(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Variable forward(AutogradContext* context, const Variable& given, const Variable& weight,
                          double eps) {
    const at::Tensor x = given.contiguous(), w = weight.contiguous();
    const int64_t cols = x.size(-1), rows = cols == 0 ? 0 : x.numel() / cols;
    at::Tensor y = at::empty_like(x), r = at::empty({rows}, x.options().dtype(accumulate_type(x)));
    for_storage_of(x, [&]<typename T>() {
      at::parallel_for(0, rows, kBlockRows, [&](int64_t begin, int64_t end) {
        row_kernels::rms_norm_forward<T>({end - begin, cols}, in<T>(x) + begin * cols, in<T>(w),
                                         eps, out<T>(y) + begin * cols,
                                         out<row_kernels::Acc<T>>(r) + begin);
      });
    });
    context->save_for_backward({x, w, r});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1], &r = saved[2], dy = gradients[0].contiguous();
    const int64_t cols = x.size(-1), rows = r.size(0), blocks = blocks_of(rows);
    at::Tensor dx = at::empty_like(x), partial = at::zeros({blocks, cols}, r.options());
    for_storage_of(x, [&]<typename T>() {
      using A = row_kernels::Acc<T>;
      at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t block = first; block < last; ++block) {
          const int64_t row = block * kBlockRows, count = std::min(kBlockRows, rows - row),
                        at = row * cols;
          row_kernels::rms_norm_backward<T>({count, cols}, {.dy = in<T>(dy) + at,
                                                            .x = in<T>(x) + at,
                                                            .w = in<T>(w),
                                                            .r = in<A>(r) + row,
                                                            .dx = out<T>(dx) + at,
                                                            .dw = out<A>(partial) + block * cols});
        }
      });
    });
    at::Tensor dw = at::zeros({cols}, r.options());
    for (int64_t block = 0; block < blocks; ++block) dw.add_(partial[block]);
    return {dx, dw.to(w.scalar_type()), Variable()};
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

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

}  // namespace mm::model
