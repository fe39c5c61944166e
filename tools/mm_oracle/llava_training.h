#pragma once
#include <set>
#include <string>

#include "tools/mm_oracle/llava_case.h"
#include "tools/mm_oracle/report.h"

namespace mm::oracle {

/// Ten (or as many as the folder says) AdamW steps on the one batch, per entry of "train": vision
/// frozen, all trained. Checks the loss and gradient norm of each step, the loss after the last,
/// how far each parameter went, and the parameters in "after10/". Parameters of `null_params` are
/// left out of the changes. Also the losses of the float64 reference, run in float64.
void check_training(Folder& folder, const std::set<std::string>& null_params, Report& report);

}  // namespace mm::oracle
