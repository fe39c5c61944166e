#include "lib/model/linear.h"

#include "lib/model/products.h"

namespace mm::model {

at::Tensor apply(const Linear& layer, const ParamView& params, const at::Tensor& x) {
  const at::Tensor bias = layer.bias >= 0 ? params.get(layer.bias) : at::Tensor();
  const at::Tensor whole = linear_product(x, params.get(layer.weight), bias);
  const Adapter* adapter = params.adapter(layer.weight);
  if (adapter == nullptr) return whole;
  // The narrow side is scaled: rank columns instead of `out`.
  const at::Tensor narrow =
      linear_product(params.adapter_input(layer.weight, x), params.get(adapter->a), {}) *
      adapter->scale;
  return whole + linear_product(narrow, params.get(adapter->b), {});
}

}  // namespace mm::model
