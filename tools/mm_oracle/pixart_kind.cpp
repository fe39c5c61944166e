#include <ATen/ATen.h>

#include "lib/model/hf_load.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/diffusion_case.h"
#include "tools/mm_oracle/gradient_checks.h"
#include "tools/mm_oracle/kinds.h"
#include "tools/mm_oracle/training_course.h"

namespace mm::oracle {
namespace {

DiffusionCase read_case(Folder& folder, at::ScalarType dtype) {
  DiffusionCase c = read_diffusion_case(folder, folder.directory(), {}, dtype);
  c.input.times = folder.tensor("t");
  c.input.captions = folder.tensor("caption").to(dtype);
  c.input.caption_mask = folder.tensor("caption_mask").to(at::kBool);
  return c;
}

// Rows of [batch, token, ...] that the mask keeps.
at::Tensor kept(const at::Tensor& x, const at::Tensor& mask) {
  return x.index({mask.narrow(1, 0, x.size(1))});
}

void check_forward(Folder& folder, const DiffusionCase& c, Report& report) {
  const model::SlotValues slots = c.forward();
  const model::Process process(model::Objective{});
  check_output(report, "xt", process.noisy(c.input.clean, *c.batch().diffusion),
               folder.tensor("xt"));
  std::vector<std::pair<std::string, std::string>> pairs = {{"tokens.0", "inter/tokens"},
                                                            {"conditioning", "inter/conditioning"},
                                                            {"modulation", "inter/modulation"},
                                                            {"prediction", "output"}};
  for (int64_t i = 0; i < c.loaded.config.layers; ++i)
    pairs.emplace_back("tokens." + std::to_string(i + 1), "inter/block" + std::to_string(i));
  check_slots(folder, c, slots, pairs, report);
  const at::Tensor captions = slots[model::find_slot(c.loaded.model, "caption")];
  check_output(report, "inter/caption", kept(captions, c.input.caption_mask),
               kept(folder.tensor("inter/caption"), c.input.caption_mask));
}

void check_step(Folder& folder, const DiffusionCase& c, const std::set<std::string>& null_params,
                Report& report) {
  model::SimpleParams params = c.params();
  const model::EagerStep step{c.loaded.model, params, params.trainable(), params, 1 / c.pictures()};
  const model::SlotValues slots = model::eager_train(step, c.batch());
  const std::string path = c.dtype == at::kDouble ? "loss_float64" : "loss";
  report.number(path,
                relative_error(slots[c.loaded.model.loss_slot].item<double>() / c.pictures(),
                               folder.number(path)),
                kDiffusionLossTolerance, "rel");
  if (c.dtype == at::kFloat)
    check_gradients(folder, {}, gradients_of(c.loaded.model, params), null_params, report);
}

void check_course(Folder& folder, const DiffusionCase& c, const std::set<std::string>& null_params,
                  Report& report) {
  const Hyper hyper = read_hyper(folder);
  const at::Tensor times = c.input.times;
  const Course course =
      run_course({.model = c.loaded.model,
                  .start = c.loaded.values,
                  .trainable = model::params_in_use(c.loaded.model),
                  .dtype = c.dtype,
                  .targets = c.pictures(),
                  .batch = [&](int step) { return c.batch((times + 37 * step).remainder(1000)); }},
                 hyper);
  check_losses(folder, course, "train", c.dtype == at::kDouble, report);
  if (c.dtype == at::kDouble) return;
  const std::string norms = "train/grad_norms_before_clip";
  report.number(norms, worst_error(course.norms, folder.numbers(norms)), 1e-3, "rel");
  check_change_lengths(folder, {c.loaded.model, c.loaded.values, course.values},
                       "train/param_change_l2", null_params, report);
}

// Resolution and aspect ratio too; tensors that the subfolder lacks are the main file's.
void check_with_size(Folder& folder, const DiffusionCase& without, Report& report) {
  const auto directory = folder.directory() / "with_size";
  DiffusionCase c = without;
  c.loaded.config = model::read_diffusion_config(directory / "config.json");
  c.loaded.model = model::build_diffusion(c.loaded.config, {});
  c.loaded.values.clear();
  const auto main = ckpt::HfWeights::open(folder.directory()),
             more = ckpt::HfWeights::open(directory);
  for (const model::ParamSpec& spec : c.loaded.model.params) {
    const ckpt::HfTensor* own = more.find(spec.name);
    const ckpt::HfTensor& from = own != nullptr ? *own : main.at(spec.name);
    c.loaded.values.push_back(model::to_tensor(*from.file, *from.entry));
  }
  c.input.resolutions = folder.tensor("with_size/resolution");
  c.input.aspect_ratios = folder.tensor("with_size/aspect_ratio");
  check_slots(folder, c, c.forward(), {{"prediction", "with_size/output"}}, report);
}

}  // namespace

void check_pixart(Folder& folder, Report& report) {
  folder.set_aside({"seed", "shape", "measured", "gradients/measured_worst_rel_l2_vs_float64",
                    "optimizer/timesteps_at_step_s", "with_size_weights",
                    "train/measured_worst_rel_loss_vs_float64",
                    "train/measured_rel_param_change_vs_float64"});
  const auto null_params = folder.words("gradients/null_grad_params");
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const DiffusionCase c = read_case(folder, dtype);
    check_step(folder, c, null_params, report);
    check_course(folder, c, null_params, report);
    if (dtype != at::kFloat) continue;
    check_names(report, "optimizer/no_decay", names_without_decay(c.loaded.model),
                folder.words("optimizer/no_decay"));
    check_names(report, "params_without_gradient", {}, folder.words("params_without_gradient"));
    check_forward(folder, c, report);
    check_with_size(folder, c, report);
  }
}

}  // namespace mm::oracle
