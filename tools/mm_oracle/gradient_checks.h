#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>

#include "lib/model/eager.h"
#include "tools/mm_oracle/folder.h"
#include "tools/mm_oracle/report.h"

namespace mm::oracle {

/// Gradients of the mean loss, by parameter name, and the norm of all.
struct Gradients {
  std::map<std::string, at::Tensor> by_name;
  double total = 0;
};
/// What `params` has accumulated.
Gradients gradients_of(const model::Model& model, const model::SimpleParams& params);

/// Where a folder keeps them: norms at `path`, tensors by name behind `tensors`.
struct GradientPlace {
  std::string path = "gradients";
  std::string tensors = "grad/";
};

/// Every norm, the norm of all and the stored tensors. Parameters of `null_params`, whose gradient
/// is zero in exact arithmetic, must be below a millionth of the whole, and may have none.
void check_gradients(Folder& folder, const GradientPlace& place, const Gradients& got,
                     const std::set<std::string>& null_params, Report& report);

}  // namespace mm::oracle
