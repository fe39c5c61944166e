#include "lib/model/rows.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lib/base/error.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor zeros_with_rows(at::IntArrayRef sizes, const at::Tensor& index, const at::Tensor& rows) {
  return at::zeros(sizes, rows.options()).index_copy_(0, index, rows);
}

struct SelectRows : torch::autograd::Function<SelectRows> {
  static Variable forward(AutogradContext* context, const Variable& x, const at::Tensor& index) {
    context->save_for_backward({index});
    context->saved_data["sizes"] = x.sizes().vec();
    return x.index_select(0, index);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor index = context->get_saved_variables()[0];
    const auto sizes = context->saved_data["sizes"].toIntVector();
    return {zeros_with_rows(sizes, index, gradients[0]), Variable()};
  }
};

struct ReplaceRows : torch::autograd::Function<ReplaceRows> {
  static Variable forward(AutogradContext* context, const Variable& x, const at::Tensor& index,
                          const Variable& source) {
    context->save_for_backward({index});
    return x.index_copy(0, index, source);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor index = context->get_saved_variables()[0];
    const at::Tensor& g = gradients[0];
    return {g.index_fill(0, index, 0), Variable(), g.index_select(0, index)};
  }
};

/// Both directions of the padded permutation; `source` reads forward, `back` reads backward.
struct MoveRows : torch::autograd::Function<MoveRows> {
  static Variable forward(AutogradContext* context, const Variable& x, const at::Tensor& source,
                          const at::Tensor& back, bool back_pads) {
    context->save_for_backward({source, back});
    context->saved_data["back_pads"] = back_pads;
    context->saved_data["sizes"] = x.sizes().vec();
    return x.index_select(0, source);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& g = gradients[0];
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const at::Tensor moved = context->saved_data["back_pads"].toBool()
                                 ? zeros_with_rows(sizes, saved[0], g)
                                 : g.index_select(0, saved[1]);
    return {moved, Variable(), Variable(), Variable()};
  }
};

}  // namespace

at::Tensor select_rows(const at::Tensor& x, const at::Tensor& index) {
  return SelectRows::apply(x, index);
}

at::Tensor replace_rows(const at::Tensor& x, const at::Tensor& index, const at::Tensor& source) {
  MM_CHECK(source.size(0) == index.size(0), "{} rows for {} places", source.size(0), index.size(0));
  return ReplaceRows::apply(x, index, source);
}

at::Tensor permute_rows(const at::Tensor& x, const at::Tensor& gather, const at::Tensor& inverse) {
  return MoveRows::apply(x, gather, inverse, /*back_pads=*/false);
}

at::Tensor unpermute_rows(const at::Tensor& padded, const at::Tensor& gather,
                          const at::Tensor& inverse) {
  return MoveRows::apply(padded, inverse, gather, /*back_pads=*/true);
}

}  // namespace mm::model
