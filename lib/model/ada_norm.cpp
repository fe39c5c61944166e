#include "lib/model/ada_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/ada_norm.h"
#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using kernels::PictureRows;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

bool fits(const at::Tensor& x, const at::Tensor& of_picture) {
  return of_picture.dim() == 3 && of_picture.size(0) == x.size(0) && of_picture.size(1) == 1 &&
         of_picture.size(2) == x.size(2) && of_picture.scalar_type() == x.scalar_type();
}

/// Some rows of one picture.
struct Block {
  int64_t picture = 0, row = 0, rows = 0;  ///< `row` counts over all pictures
  int64_t index = 0;                       ///< among all blocks, picture by picture
};

/// x's sizes; `stride` of its shift, scale or gate.
PictureRows shape_of(const at::Tensor& x, const at::Tensor& of_picture) {
  return {x.size(0), x.size(1), x.size(2), of_picture.stride(0)};
}

// f(block) for all blocks of all pictures, in parallel. Bits do not depend on the thread count.
template <typename F>
void for_blocks(const PictureRows& s, F&& f) {
  const int64_t each = kernels::ada_norm_blocks(s);
  at::parallel_for(0, s.pictures * each, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t picture = i / each, first = i % each * kernels::kAdaNormBlockRows;
      f(Block{picture, picture * s.rows + first,
              std::min(kernels::kAdaNormBlockRows, s.rows - first), i});
    }
  });
}

PictureRows one_block(const PictureRows& s, const Block& b) {
  return {1, b.rows, s.cols, s.stride};
}

/// Sums of each block [blocks of all pictures, h], and their sum as the gradient of `of_picture`.
at::Tensor block_sums(const at::Tensor& x, const PictureRows& s) {
  return at::zeros({s.pictures * kernels::ada_norm_blocks(s), s.cols},
                   x.options().dtype(accumulate_type(x)));
}
at::Tensor sum_blocks(const at::Tensor& partial, const PictureRows& s, at::ScalarType type) {
  const int64_t each = kernels::ada_norm_blocks(s);
  if (each == 1) return partial.view({s.pictures, 1, s.cols}).to(type);
  at::Tensor sum = at::zeros({s.pictures, 1, s.cols}, partial.options());
  const at::Tensor blocks = partial.view({s.pictures, each, s.cols});
  for (int64_t block = 0; block < each; ++block) sum.add_(blocks.narrow(1, block, 1));
  return sum.to(type);
}

struct ModulatedNorm : torch::autograd::Function<ModulatedNorm> {
  static Variable forward(AutogradContext* context, const Variable& given, const Variable& shift,
                          const Variable& scale, double eps) {
    const at::Tensor x = given.contiguous();
    const PictureRows s = shape_of(x, scale);
    const at::TensorOptions wide = x.options().dtype(accumulate_type(x));
    at::Tensor y = at::empty_like(x), mean = at::empty({s.pictures * s.rows}, wide),
               r = at::empty_like(mean);
    for_storage_of(x, [&]<typename T>() {
      using A = kernels::Acc<T>;
      for_blocks(s, [&](const Block& b) {
        kernels::modulated_norm_forward<T>(one_block(s, b),
                                           {.x = in<T>(x) + b.row * s.cols,
                                            .shift = in<T>(shift) + b.picture * s.stride,
                                            .scale = in<T>(scale) + b.picture * s.stride,
                                            .eps = eps,
                                            .y = out<T>(y) + b.row * s.cols,
                                            .mean = out<A>(mean) + b.row,
                                            .r = out<A>(r) + b.row});
      });
    });
    context->save_for_backward({x, scale, mean, r});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &scale = saved[1], &mean = saved[2], &r = saved[3],
                     dy = gradients[0].contiguous();
    const PictureRows s = shape_of(x, scale);
    at::Tensor dx = at::empty_like(x), shifts = block_sums(x, s), scales = block_sums(x, s);
    for_storage_of(x, [&]<typename T>() {
      using A = kernels::Acc<T>;
      for_blocks(s, [&](const Block& b) {
        kernels::modulated_norm_backward<T>(one_block(s, b),
                                            {.dy = in<T>(dy) + b.row * s.cols,
                                             .x = in<T>(x) + b.row * s.cols,
                                             .scale = in<T>(scale) + b.picture * s.stride,
                                             .mean = in<A>(mean) + b.row,
                                             .r = in<A>(r) + b.row,
                                             .dx = out<T>(dx) + b.row * s.cols,
                                             .dshift = out<A>(shifts) + b.index * s.cols,
                                             .dscale = out<A>(scales) + b.index * s.cols});
      });
    });
    return {dx, sum_blocks(shifts, s, x.scalar_type()), sum_blocks(scales, s, x.scalar_type()),
            Variable()};
  }
};

struct GatedAdd : torch::autograd::Function<GatedAdd> {
  static Variable forward(AutogradContext* context, const Variable& given, const Variable& gate,
                          const Variable& given_f) {
    const at::Tensor x = given.contiguous(), f = given_f.contiguous();
    const PictureRows s = shape_of(x, gate);
    at::Tensor y = at::empty_like(x);
    for_storage_of(x, [&]<typename T>() {
      for_blocks(s, [&](const Block& b) {
        kernels::gated_add_forward<T>(one_block(s, b), {.x = in<T>(x) + b.row * s.cols,
                                                        .gate = in<T>(gate) + b.picture * s.stride,
                                                        .f = in<T>(f) + b.row * s.cols,
                                                        .y = out<T>(y) + b.row * s.cols});
      });
    });
    context->save_for_backward({gate, f});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &f = saved[1], dy = gradients[0].contiguous();
    const PictureRows s = shape_of(f, gate);
    at::Tensor df = at::empty_like(f), partial = block_sums(f, s);
    for_storage_of(f, [&]<typename T>() {
      using A = kernels::Acc<T>;
      for_blocks(s, [&](const Block& b) {
        kernels::gated_add_backward<T>(one_block(s, b),
                                       {.dy = in<T>(dy) + b.row * s.cols,
                                        .gate = in<T>(gate) + b.picture * s.stride,
                                        .f = in<T>(f) + b.row * s.cols,
                                        .df = out<T>(df) + b.row * s.cols,
                                        .dgate = out<A>(partial) + b.index * s.cols});
      });
    });
    return {dy, sum_blocks(partial, s, f.scalar_type()), df};
  }
};

}  // namespace

at::Tensor modulated_norm_reference(const at::Tensor& x, const at::Tensor& shift,
                                    const at::Tensor& scale, double eps) {
  return at::addcmul(shift, at::layer_norm(x, {x.size(-1)}, {}, {}, eps), scale + 1);
}

at::Tensor gated_add_reference(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& f) {
  return at::addcmul(x, gate, f);
}

at::Tensor modulated_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                          double eps) {
  if (!has_row_kernel(x) || x.dim() != 3 || x.numel() == 0 || !fits(x, shift) || !fits(x, scale))
    return modulated_norm_reference(x, shift, scale, eps);
  // Views into one modulation stay where they are.
  const bool together =
      shift.stride(0) == scale.stride(0) && shift.stride(2) == 1 && scale.stride(2) == 1;
  return ModulatedNorm::apply(x, together ? shift : shift.contiguous(),
                              together ? scale : scale.contiguous(), eps);
}

at::Tensor gated_add(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& f) {
  if (!has_row_kernel(x) || x.dim() != 3 || x.numel() == 0 || !fits(x, gate) ||
      f.sizes() != x.sizes() || f.scalar_type() != x.scalar_type())
    return gated_add_reference(x, gate, f);
  return GatedAdd::apply(x, gate.stride(2) == 1 ? gate : gate.contiguous(), f);
}

}  // namespace mm::model
