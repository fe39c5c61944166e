#include "tools/mm_oracle/llava_training.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/training_course.h"

namespace mm::oracle {
namespace {

void check_run(Folder& folder, const LlavaCase& c, const Hyper& hyper, const std::string& tag,
               const std::set<std::string>& null_params, Report& report) {
  if (tag != "vision_frozen" && tag != "all_trained") return;
  // What no segment reads gets no gradient and must not decay.
  std::vector<bool> trainable = model::params_in_use(c.loaded.model);
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (tag == "vision_frozen" && c.loaded.model.params[i].part == model::Part::kVision)
      trainable[i] = false;
  }
  const Course course = run_course({.model = c.loaded.model,
                                    .start = c.loaded.values,
                                    .trainable = trainable,
                                    .dtype = c.dtype,
                                    .targets = c.targets,
                                    .batch = [&](int) { return c.batch; }},
                                   hyper);
  const std::string at = "train/" + tag;
  check_losses(folder, course, at, c.dtype == at::kDouble, report);
  if (c.dtype == at::kDouble) return;
  report.number(at + "/grad_norms_before_clip",
                worst_error(course.norms, folder.numbers(at + "/grad_norms_before_clip")), 1e-3,
                "rel");
  const Way way{c.loaded.model, c.loaded.values, course.values};
  check_change_lengths(folder, way, at + "/param_change_l2", null_params, report);
  check_changed_tensors(folder, way, "after10/" + tag + "/", {}, report);
  folder.set_aside({(at + "/measured_worst_rel_loss_vs_float64").c_str(),
                    (at + "/measured_rel_param_change_vs_float64").c_str()});
}

}  // namespace

void check_training(Folder& folder, const std::set<std::string>& null_params, Report& report) {
  if (folder.take("optimizer/same_batch_every_step") != true)
    throw DataError("{}: expected one batch", folder.directory().string());
  const Hyper hyper = read_hyper(folder);
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const LlavaCase c = read_llava_case(folder, dtype);
    for (const std::string& tag : folder.keys("train"))
      check_run(folder, c, hyper, tag, null_params, report);
  }
}

}  // namespace mm::oracle
