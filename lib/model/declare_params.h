#pragma once
#include <string>
#include <vector>

#include "lib/model/linear.h"

namespace mm::model {

/// How a linear layer of a diffusion transformer begins: Xavier with zero biases; all zero, so that
/// a residual block starts as the identity; or N(0, 0.02), of embedders.
enum class LinearInit { kXavier, kZero, kSmallNormal };

/// Declares parameters of one part under one prefix.
class DeclareParams {
 public:
  DeclareParams(Model& model, Part part, std::string prefix)
      : model_(model), part_(part), prefix_(std::move(prefix)) {}

  DeclareParams below(const std::string& name) const { return {model_, part_, prefix_ + name}; }
  ParamId tensor(const std::string& name, std::vector<int64_t> shape, Init init,
                 double std = 0.02) const;
  /// Weight [out, in] and bias [out].
  Linear linear(const std::string& name, int64_t out, int64_t in,
                LinearInit init = LinearInit::kXavier) const;

 private:
  Model& model_;
  Part part_;
  std::string prefix_;
};

}  // namespace mm::model
