#pragma once
#include <ATen/core/Tensor.h>

#include "lib/model/block.h"

namespace mm::model {

/// Where a linear layer's parameters are: weight [out, in], bias [out] or none.
struct Linear {
  ParamId weight = -1;
  ParamId bias = -1;
};

/// x [..., in] -> x W^T + b [..., out], plus the low-rank product of the weight's adapter if
/// `params` knows one. With a frozen weight and no adapter autograd keeps no x.
at::Tensor apply(const Linear& layer, const ParamView& params, const at::Tensor& x);

/// Appends the ids that exist.
inline void append_params(std::vector<ParamId>& list, const Linear& layer) {
  list.push_back(layer.weight);
  if (layer.bias >= 0) list.push_back(layer.bias);
}

}  // namespace mm::model
