#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/hf_index.h"
#include "lib/model/block.h"

namespace mm::model {

/// A stored name in the model's spelling; nothing for a tensor to pass over.
using Respell = std::function<std::optional<std::string>(std::string_view)>;

/// What may stand beside the one-to-one match of names.
struct StrictLoad {
  std::string origin;  ///< directory, for messages
  Respell respell;     ///< empty: names are the model's
  /// Names that hold a copy of another tensor: {copy, original}. A stored copy must be equal, and
  /// is dropped (field case C47).
  std::vector<std::pair<std::string, std::string>> copies;
};

/// One value per parameter (row = ParamId), in the dtype of the files. Shapes must be equal but for
/// dimensions of 1 at the end (a 1x1 convolution is a linear layer). Nothing is left random: throws
/// DataError naming directory and tensor for a parameter without a tensor, a tensor without a
/// parameter, two tensors for one parameter, a copy that differs, another shape, or other than
/// floating-point numbers.
std::vector<at::Tensor> load_strictly(const Model& model, const ckpt::HfWeights& weights,
                                      const StrictLoad& options);

}  // namespace mm::model
