#include "lib/model/products.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Below this many rows widening the weight costs more than the product.
constexpr int64_t kFewRows = 16;

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

at::Tensor widened_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
  return at::linear(x.to(at::kFloat), weight.to(at::kFloat), wide_bias).to(x.scalar_type());
}

struct WidenedLinear : torch::autograd::Function<WidenedLinear> {
  // apply() takes an absent bias as nullopt only.
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const std::optional<at::Tensor>& given_bias) {
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    const bool weight_trains = weight.requires_grad();
    context->saved_data["bias_trains"] = bias.defined() && bias.requires_grad();
    context->save_for_backward(
        {weight_trains ? x : Variable(), x.requires_grad() ? weight : Variable()});
    context->saved_data["dtype"] = x.scalar_type();
    return widened_linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    const at::Tensor dy = gradients[0].to(at::kFloat);
    variable_list out(3);
    if (weight.defined()) out[0] = at::matmul(dy, weight.to(at::kFloat)).to(dtype);
    if (x.defined()) out[1] = at::mm(as_rows(dy).t(), as_rows(x).to(at::kFloat)).to(dtype);
    if (context->saved_data["bias_trains"].toBool()) out[2] = as_rows(dy).sum(0).to(dtype);
    return out;
  }
};

}  // namespace

bool widens_products(at::ScalarType dtype) {
#if defined(__x86_64__)
  static const bool multiplies_bf16 = __builtin_cpu_supports("avx512bf16") > 0;
  return (dtype == at::kBFloat16 || dtype == at::kHalf) && !multiplies_bf16;
#else
  return false;
#endif
}

at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool widen =
      x.device().is_cpu() && widens_products(x.scalar_type()) && x.numel() >= kFewRows * x.size(-1);
  if (!widen) return at::linear(x, weight, bias);
  if (!at::GradMode::is_enabled()) return widened_linear(x, weight, bias);
  return WidenedLinear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

}  // namespace mm::model
