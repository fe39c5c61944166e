#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/diffusion_sampler.h"
#include "lib/model/position_table.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/diffusion_case.h"
#include "tools/mm_oracle/gradient_checks.h"
#include "tools/mm_oracle/kinds.h"
#include "tools/mm_oracle/training_course.h"

namespace mm::oracle {
namespace {

// The bound at t = 0 holds the logarithm of a tiny difference.
constexpr double kFirstStepTolerance = 3e-2, kVarianceTolerance = 2e-5;

model::Objective objective() { return {.variational_bound = true}; }

DiffusionCase read_case(Folder& folder, at::ScalarType dtype) {
  DiffusionCase c = read_diffusion_case(folder, folder.directory(), objective(), dtype);
  c.input.times = folder.tensor("t");
  c.input.labels = folder.tensor("labels");
  return c;
}

void check_settings(Folder& folder, Report& report) {
  const model::Process process(objective());
  const auto& betas = process.schedule().betas;
  report.exact("schedule",
               folder.take("schedule") == Json({{"betas", "linear"},
                                                {"start", betas.front()},
                                                {"end", betas.back()},
                                                {"steps", process.schedule().steps()}}),
               "another schedule here");
}

double mean_of(const model::SlotValues& slots, const model::Model& m, const char* slot) {
  return slots[model::find_slot(m, slot)].mean().item<double>();
}

// Terms of every picture: those at t = 0 have a tolerance of their own in fp32.
void check_terms(Folder& folder, const DiffusionCase& c, const model::SlotValues& slots,
                 Report& report) {
  const model::Model& m = c.loaded.model;
  const bool wide = c.dtype == at::kDouble;
  const std::string suffix = wide ? "_float64" : "";
  const auto times = folder.numbers("t");
  const std::pair<const char*, std::string> terms[] = {
      {"square_losses", "mse_per_sample" + suffix}, {"variance_losses", "vb_per_sample" + suffix}};
  for (const auto& [slot, path] : terms) {
    const auto want = folder.numbers(path);
    const at::Tensor got = slots[model::find_slot(m, slot)];
    for (size_t i = 0; i < want.size(); ++i) {
      double tolerance = kVarianceTolerance;
      if (times[i] == 0 && !wide) tolerance = kFirstStepTolerance;
      report.number(path + "/" + std::to_string(i),
                    relative_error(got[static_cast<int64_t>(i)].item<double>(), want[i]), tolerance,
                    "rel");
    }
  }
  report.number(
      "loss_at_t" + suffix,
      relative_error(mean_of(slots, m, "sample_losses"), folder.number("loss_at_t" + suffix)),
      wide ? kDiffusionLossTolerance : kFirstStepTolerance, "rel");
}

void check_forward(Folder& folder, const DiffusionCase& c, Report& report) {
  const model::SlotValues slots = c.forward();
  check_terms(folder, c, slots, report);
  if (c.dtype != at::kFloat) return;
  const model::Process process(objective());
  check_output(report, "xt", process.noisy(c.input.clean, *c.batch().diffusion),
               folder.tensor("xt"));
  const model::DiffusionConfig& config = c.loaded.config;
  const int64_t side = config.sample_size / config.patch;
  check_output(report, "pos_embed",
               model::sincos_positions(config.hidden(), side, side,
                                       {static_cast<double>(side), config.position_scale})
                   .unsqueeze(0),
               folder.tensor("pos_embed"));
  std::vector<std::pair<std::string, std::string>> pairs = {{"tokens.0", "inter/tokens"},
                                                            {"conditioning", "inter/conditioning"},
                                                            {"prediction", "output"}};
  for (int64_t i = 0; i < config.layers; ++i)
    pairs.emplace_back("tokens." + std::to_string(i + 1), "inter/block" + std::to_string(i));
  check_slots(folder, c, slots, pairs, report);
}

void check_step(Folder& folder, const DiffusionCase& c, const std::set<std::string>& null_params,
                Report& report) {
  model::SimpleParams params = c.params();
  const model::EagerStep step{c.loaded.model, params, params.trainable(), params, 1 / c.pictures()};
  const model::SlotValues slots = model::eager_train(step, c.batch(folder.tensor("t_train")));
  const std::string path =
      std::string("loss_at_t_train") + (c.dtype == at::kDouble ? "_float64" : "");
  report.number(
      path, relative_error(mean_of(slots, c.loaded.model, "sample_losses"), folder.number(path)),
      kDiffusionLossTolerance, "rel");
  if (c.dtype == at::kFloat)
    check_gradients(folder, {}, gradients_of(c.loaded.model, params), null_params, report);
}

void check_course(Folder& folder, const DiffusionCase& c, const std::set<std::string>& null_params,
                  Report& report) {
  const Hyper hyper = read_hyper(folder);
  const at::Tensor times = folder.tensor("t_train");
  const Course course =
      run_course({.model = c.loaded.model,
                  .start = c.loaded.values,
                  .trainable = model::params_in_use(c.loaded.model),
                  .dtype = c.dtype,
                  .targets = c.pictures(),
                  .batch = [&](int step) { return c.batch((times + 37 * step).remainder(1000)); },
                  .ema_decay = folder.number("optimizer/ema_decay")},
                 hyper);
  check_losses(folder, course, "train", c.dtype == at::kDouble, report);
  if (c.dtype == at::kDouble) return;
  report.number("train/grad_norms", worst_error(course.norms, folder.numbers("train/grad_norms")),
                1e-3, "rel");
  const Way average{c.loaded.model, c.loaded.values, course.averages};
  check_change_lengths(folder, average, "train/ema_change_l2", null_params, report);
  check_changed_tensors(folder, average, "ema10/", null_params, report);
  check_changed_tensors(folder, {c.loaded.model, c.loaded.values, course.values}, "after10/",
                        null_params, report);
}

void check_ddim(Folder& folder, const DiffusionCase& c, Report& report) {
  const at::Tensor start = folder.tensor("ddim/start");
  const auto labels = folder.numbers("ddim/labels");
  const auto pictures = start.size(0);
  auto input = std::make_shared<model::DiffusionInput>();
  input->labels = at::tensor(labels, at::kDouble).to(at::kLong).narrow(0, 0, pictures);
  model::Batch condition;
  condition.diffusion = input;
  const model::SimpleParams params = c.params();
  const model::Process process(objective());
  const model::Predictor predict = model::model_predictor(
      {c.loaded.model, c.loaded.config, process.objective(), params, condition},
      {.scale = folder.number("ddim/guidance")});
  std::vector<at::Tensor> trajectory;
  const auto steps = folder.numbers("ddim/timesteps");
  const model::SamplerOptions options{.steps = static_cast<int64_t>(steps.size())};
  const auto mine =
      model::sampling_steps(options.spacing, process.schedule().steps(), options.steps);
  report.exact("ddim/timesteps", std::vector<double>(mine.begin(), mine.end()) == steps,
               "other steps here");
  model::sample(process, options, start, predict,
                [&](int64_t, const at::Tensor& x) { trajectory.push_back(x); });
  report.number("ddim/trajectory",
                relative_error(at::stack(trajectory), folder.tensor("ddim/trajectory")), 5e-5,
                "rel");
}

// The same layout with an embedder of its own in each block.
void check_untied(Folder& folder, const DiffusionCase& tied, Report& report) {
  DiffusionCase c = tied;
  const auto directory = folder.directory() / "untied";
  c.loaded.config = model::read_diffusion_config(directory / "config.json");
  c.loaded.config.own_embedders = true;
  c.loaded.model = model::build_diffusion(c.loaded.config, objective());
  c.loaded.values = model::load_diffusion_weights(
      c.loaded.model, c.loaded.config, ckpt::HfWeights::open(directory), directory.string());
  check_slots(folder, c, c.forward(), {{"prediction", "untied/output"}}, report);
}

}  // namespace

void check_dit(Folder& folder, Report& report) {
  folder.set_aside({"seed", "shape", "measured", "gradients/measured_worst_rel_l2_vs_float64",
                    "t_train", "optimizer/timesteps_at_step_s", "ddim/eta", "ddim/guided_channels",
                    "ddim/measured_scheduler_vs_own_formula", "ddim/measured_vs_float64",
                    "train/measured_worst_rel_loss_vs_float64",
                    "train/measured_rel_param_change_vs_float64",
                    "train/measured_rel_ema_change_vs_float64"});
  const auto null_params = folder.words("gradients/null_grad_params");
  check_settings(folder, report);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const DiffusionCase c = read_case(folder, dtype);
    check_forward(folder, c, report);
    check_step(folder, c, null_params, report);
    check_course(folder, c, null_params, report);
    if (dtype != at::kFloat) continue;
    check_ddim(folder, c, report);
    check_untied(folder, c, report);
  }
}

}  // namespace mm::oracle
