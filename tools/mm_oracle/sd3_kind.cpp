#include <ATen/ATen.h>

#include "lib/model/objective_draw.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/diffusion_case.h"
#include "tools/mm_oracle/gradient_checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

model::Objective flow(double shift, model::FlowWeight weight = model::FlowWeight::kNone) {
  return {.prediction = model::Prediction::kVelocity,
          .shift = shift,
          .from_table = true,
          .weight = weight};
}

DiffusionCase read_case(Folder& folder, const std::string& name, const model::Objective& objective,
                        at::ScalarType dtype) {
  DiffusionCase c = read_diffusion_case(folder, folder.directory() / name, objective, dtype);
  c.input.times = folder.tensor("timestep");
  c.input.sigmas = folder.tensor("sigma").to(dtype);
  c.input.captions = folder.tensor("text").to(dtype);
  c.input.pooled = folder.tensor("pooled").to(dtype);
  return c;
}

// How a draw becomes a place in the schedule, its sigma and its time; fp32 in the reference.
void check_draws(Folder& folder, double shift, Report& report) {
  const auto us = folder.numbers("u"), indices = folder.numbers("index"),
             sigmas = folder.numbers("sigma"), times = folder.numbers("timestep"),
             normals = folder.numbers("normal_draws");
  for (size_t i = 0; i < us.size(); ++i) {
    const std::string at = std::to_string(i);
    const model::DrawnTime drawn = model::time_of(flow(shift), us[i]);
    report.number("u/" + at, relative_error(1 / (1 + std::exp(-normals[i])), us[i]), 1e-6, "rel");
    report.number("index/" + at,
                  relative_error(model::table_sigma(static_cast<int64_t>(indices[i]), 1000, shift),
                                 drawn.sigma),
                  1e-12, "rel");
    report.number("sigma/" + at, relative_error(drawn.sigma, sigmas[i]), 1e-6, "rel");
    report.number("timestep/" + at, relative_error(drawn.time, times[i]), 1e-6, "rel");
  }
}

double mean_loss(const DiffusionCase& c, const model::SlotValues& slots) {
  return slots[c.loaded.model.loss_slot].item<double>() / c.pictures();
}

void check_loss(Folder& folder, const std::string& path, double got, Report& report) {
  report.number(path, relative_error(got, folder.number(path)), kDiffusionLossTolerance, "rel");
}

void check_forward(Folder& folder, const DiffusionCase& c, const std::string& name,
                   Report& report) {
  const model::SlotValues slots = c.forward();
  const std::string inter = name + "/inter/";
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"tokens.0", inter + "tokens"},
      {"conditioning", inter + "conditioning"},
      {"prediction", name + "/output"}};
  for (int64_t i = 0; i < c.loaded.config.layers; ++i) {
    const std::string block = inter + "block" + std::to_string(i), at = std::to_string(i + 1);
    pairs.emplace_back("tokens." + at, block + "_image");
    if (i + 1 < c.loaded.config.layers) pairs.emplace_back("text." + at, block + "_text");
  }
  check_slots(folder, c, slots, pairs, report);
}

void check_model(Folder& folder, const std::string& name, double shift, Report& report) {
  const std::string at = "models/" + name;
  const auto null_params = folder.words(at + "/gradients/null_grad_params");
  const DiffusionCase c = read_case(folder, name, flow(shift), at::kFloat);
  model::SimpleParams params = c.params();
  const model::EagerStep step{c.loaded.model, params, params.trainable(), params, 1 / c.pictures()};
  check_loss(folder, at + "/loss", mean_loss(c, model::eager_train(step, c.batch())), report);
  check_gradients(folder, {at + "/gradients", name + "/grad/"},
                  gradients_of(c.loaded.model, params), null_params, report);
  check_names(report, at + "/params_without_gradient", {},
              folder.words(at + "/params_without_gradient"));
  check_forward(folder, c, name, report);
  const model::Process process(flow(shift));
  check_output(report, name + "/xt", process.noisy(c.input.clean, c.input),
               folder.tensor(name + "/xt"));
  const DiffusionCase wide = read_case(folder, name, flow(shift), at::kDouble);
  check_loss(folder, at + "/loss_float64", mean_loss(wide, wide.forward()), report);
  const std::pair<const char*, model::FlowWeight> weights[] = {
      {"/loss_sigma_sqrt", model::FlowWeight::kSigmaSquare},
      {"/loss_cosmap", model::FlowWeight::kCosmap}};
  for (const auto& [key, weight] : weights) {
    const DiffusionCase weighted = read_case(folder, name, flow(shift, weight), at::kFloat);
    check_loss(folder, at + key, mean_loss(weighted, weighted.forward()), report);
  }
  folder.set_aside(
      {(at + "/measured").c_str(), (at + "/gradients/measured_worst_rel_l2_vs_float64").c_str()});
}

}  // namespace

void check_sd3(Folder& folder, Report& report) {
  folder.set_aside({"seed", "shape"});
  const double shift = folder.number("shift");
  check_draws(folder, shift, report);
  for (const std::string& name : folder.keys("models")) check_model(folder, name, shift, report);
}

}  // namespace mm::oracle
