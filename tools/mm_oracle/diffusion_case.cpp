#include "tools/mm_oracle/diffusion_case.h"

#include <ATen/ATen.h>

#include "tools/mm_oracle/checks.h"

namespace mm::oracle {

model::Batch DiffusionCase::batch(const at::Tensor& times) const {
  auto with_times = std::make_shared<model::DiffusionInput>(input);
  with_times->times = times.to(dtype);
  model::Batch batch;
  batch.diffusion = with_times;
  batch.want_logits = true;
  return batch;
}

model::SimpleParams DiffusionCase::params() const {
  std::vector<at::Tensor> values;
  for (const at::Tensor& value : loaded.values) values.push_back(value.to(dtype).clone());
  return model::SimpleParams(loaded.model, std::move(values), model::params_in_use(loaded.model));
}

model::SlotValues DiffusionCase::forward() const {
  return model::eager_forward(loaded.model, params(), batch());
}

DiffusionCase read_diffusion_case(Folder& folder, const std::filesystem::path& directory,
                                  const model::Objective& objective, at::ScalarType dtype) {
  DiffusionCase c{.loaded = model::load_diffusion(directory, objective), .dtype = dtype};
  c.input.clean = folder.tensor("x0").to(dtype);
  c.input.noise = folder.tensor("noise").to(dtype);
  return c;
}

void check_output(Report& report, const std::string& name, const at::Tensor& got,
                  const at::Tensor& want) {
  report.number(name, relative_error(got, want), kOutputTolerance, "rel");
}

void check_slots(Folder& folder, const DiffusionCase& c, const model::SlotValues& slots,
                 const std::vector<std::pair<std::string, std::string>>& pairs, Report& report) {
  for (const auto& [slot, tensor] : pairs)
    check_output(report, tensor, slots[model::find_slot(c.loaded.model, slot)],
                 folder.tensor(tensor));
}

std::set<std::string> names_without_decay(const model::Model& model) {
  std::set<std::string> names;
  for (const model::ParamSpec& spec : model.params)
    if (!spec.decay && !spec.fixed) names.insert(spec.name);
  return names;
}

}  // namespace mm::oracle
