#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lib/model/diffusion_load.h"
#include "lib/model/eager.h"
#include "tools/mm_oracle/folder.h"
#include "tools/mm_oracle/report.h"

namespace mm::oracle {

// Tolerances of the folders dit, pixart and sd3, about ten times the measured rounding of fp32.
inline constexpr double kOutputTolerance = 3e-5, kDiffusionLossTolerance = 2e-6;

/// A diffusion model and the one batch of a folder, in one dtype.
struct DiffusionCase {
  model::LoadedDiffusion loaded;
  model::DiffusionInput input;  ///< floats in `dtype`; times as io.safetensors has them
  at::ScalarType dtype = at::kFloat;

  double pictures() const { return static_cast<double>(input.times.size(0)); }
  /// want_logits is set.
  model::Batch batch() const { return batch(input.times); }
  model::Batch batch(const at::Tensor& times) const;
  model::SimpleParams params() const;
  model::SlotValues forward() const;
};

/// Reads the model in `directory` and the tensors x0, noise and `times` of the folder.
DiffusionCase read_diffusion_case(Folder& folder, const std::filesystem::path& directory,
                                  const model::Objective& objective, at::ScalarType dtype);

/// relative_error within kOutputTolerance.
void check_output(Report& report, const std::string& name, const at::Tensor& got,
                  const at::Tensor& want);
/// Slots against tensors of the folder: {slot, tensor}.
void check_slots(Folder& folder, const DiffusionCase& c, const model::SlotValues& slots,
                 const std::vector<std::pair<std::string, std::string>>& pairs, Report& report);
/// Names of parameters without weight decay, and of those that nothing trains.
std::set<std::string> names_without_decay(const model::Model& model);

}  // namespace mm::oracle
