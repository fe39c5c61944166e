#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lib/model/eager.h"
#include "lib/model/hf_load.h"
#include "tools/mm_oracle/folder.h"

namespace mm::oracle {

/// The model and the one batch of a LLaVA folder, ready to run in one dtype: the padded rows as one
/// pack.
struct LlavaCase {
  model::LoadedLlava loaded;
  model::Batch batch;  ///< want_logits is set; pixels in `dtype`
  at::Tensor
      kept_rows;  ///< [T] rows of the padded [batch * token] layout that the pack holds, in order
  double targets = 0;  ///< number of target positions
  at::ScalarType dtype = at::kFloat;

  /// Fresh parameters from the files, trainable as flagged.
  model::SimpleParams params(const std::vector<bool>& trainable) const;
  std::vector<bool> all_trainable() const {
    return std::vector<bool>(loaded.model.params.size(), true);
  }
  const std::string& name(model::ParamId id) const { return loaded.model.params[id].name; }
};

/// Reads config.json, the weights and the inputs of io.safetensors. Throws DataError when they do
/// not fit together.
LlavaCase read_llava_case(Folder& folder, at::ScalarType dtype);

}  // namespace mm::oracle
