#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "lib/model/noise_schedule.h"
#include "lib/model/sampler.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

constexpr double kTolerance = 1e-12;

// Largest of the relative error and the error against 1: numbers near 0 have no digits of their
// own.
double error_of(double got, double want) {
  return std::min(relative_error(got, want), std::abs(got - want));
}

double worst_of(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, error_of(got[i], want[i]));
  return worst;
}

void check_numbers(Folder& folder, const std::string& path, const std::vector<double>& got,
                   Report& report) {
  report.number(path, worst_of(got, folder.numbers(path)), kTolerance, "rel");
}

std::vector<double> rows_of(const std::vector<double>& table, const std::vector<double>& at) {
  std::vector<double> rows;
  for (double t : at) rows.push_back(table.at(static_cast<size_t>(t)));
  return rows;
}

void check_curve(Folder& folder, const std::string& name, Report& report) {
  const auto curve = model::beta_curve(name);
  if (!curve) return;
  const auto at = folder.numbers("noise/at");
  const std::string path = "noise/" + name + "/";
  const model::NoiseSchedule schedule(
      model::betas_of(*curve, static_cast<int64_t>(folder.number("noise/steps"))));
  std::vector<double> snr, of_noise, of_v;
  for (double t : at) {
    const double ratio = schedule.snr(static_cast<int64_t>(t));
    snr.push_back(ratio);
    of_noise.push_back(std::min(ratio, 5.0) / ratio);
    of_v.push_back(std::min(ratio, 5.0) / (ratio + 1));
  }
  check_numbers(folder, path + "betas", rows_of(schedule.betas, at), report);
  check_numbers(folder, path + "alphas_cumprod", rows_of(schedule.alpha_bar, at), report);
  check_numbers(folder, path + "snr", snr, report);
  check_numbers(folder, path + "min_snr_5_weight_for_noise_prediction", of_noise, report);
  check_numbers(folder, path + "min_snr_5_weight_for_v_prediction", of_v, report);
  const double sum = std::accumulate(schedule.betas.begin(), schedule.betas.end(), 0.0);
  report.number(path + "sum_of_betas", relative_error(sum, folder.number(path + "sum_of_betas")),
                kTolerance, "rel");
  folder.set_aside({(path + "measured_rel_of_float32_library").c_str()});
}

void check_zero_terminal(Folder& folder, const std::string& name, Report& report) {
  const auto curve = model::beta_curve(name);
  if (!curve) return;
  const std::string path = "zero_terminal_snr_rescale/" + name + "/";
  const model::NoiseSchedule schedule(model::zero_terminal_snr(
      model::betas_of(*curve, static_cast<int64_t>(folder.number("noise/steps")))));
  const auto at = folder.numbers(path + "at");
  check_numbers(folder, path + "alphas_cumprod", rows_of(schedule.alpha_bar, at), report);
  check_numbers(folder, path + "betas", rows_of(schedule.betas, at), report);
}

// "leading_10" and so on.
void check_steps(Folder& folder, const std::string& key, Report& report) {
  const size_t cut = key.rfind('_');
  const auto spacing = model::step_spacing(key.substr(0, cut));
  if (!spacing || cut == std::string::npos) return;
  const std::string path = "sampling_steps/" + key;
  const auto got = model::sampling_steps(*spacing, 1000, std::stoll(key.substr(cut + 1)));
  report.exact(path, std::vector<double>(got.begin(), got.end()) == folder.numbers(path),
               "other steps here");
}

// "shift_3": sigmas in training and where sampling stops.
void check_shift(Folder& folder, const std::string& key, Report& report) {
  const std::string path = "flow/" + key + "/", sampling = "sampling_sigmas_",
                    once = "_shift_once_from_1_to_1_over_n";
  const double shift = std::stod(key.substr(key.find('_') + 1));
  for (const std::string& index : folder.keys(path + "training_sigmas_at_index")) {
    const std::string at = path + "training_sigmas_at_index/" + index;
    report.number(at,
                  error_of(model::table_sigma(std::stoll(index), 1000, shift), folder.number(at)),
                  kTolerance, "rel");
  }
  for (const std::string& name : folder.keys("flow/" + key)) {
    if (!name.starts_with(sampling)) continue;
    const int64_t count = std::stoll(name.substr(sampling.size()));
    check_numbers(folder, path + name,
                  name.ends_with(once) ? model::sampling_sigmas(count, shift)
                                       : model::sampling_sigmas_twice(count, shift, 1000),
                  report);
  }
}

// Euler on v = 2 x - sigma, with diffusers' doubly shifted sigmas.
void check_euler(Folder& folder, Report& report) {
  const std::string path = "flow/euler_on_v_eq_2x_minus_sigma/";
  const model::Process process({.prediction = model::Prediction::kVelocity});
  std::vector<double> got, want;
  model::sample(
      process,
      {.kind = model::SamplerKind::kFlowEuler,
       .steps = static_cast<int64_t>(folder.number(path + "steps")),
       .shift = folder.number(path + "shift"),
       .shift_twice = true},
      at::tensor(folder.numbers(path + "start"), at::kDouble),
      [](const at::Tensor& x, double time) { return 2 * x - time / 1000; },
      [&](int64_t, const at::Tensor& x) {
        for (int64_t i = 0; i < x.numel(); ++i) got.push_back(x[i].item<double>());
      });
  for (const Json& row : folder.take(path + "trajectory"))
    for (const Json& value : row) want.push_back(value.get<double>());
  report.number(path + "trajectory", worst_of(got, want), kTolerance, "rel");
}

}  // namespace

void check_diffusion_schedules(Folder& folder, Report& report) {
  for (const std::string& name : folder.keys("noise")) check_curve(folder, name, report);
  for (const std::string& name : folder.keys("zero_terminal_snr_rescale"))
    check_zero_terminal(folder, name, report);
  for (const std::string& key : folder.keys("sampling_steps")) check_steps(folder, key, report);
  for (const std::string& key : folder.keys("flow"))
    if (key.starts_with("shift_")) check_shift(folder, key, report);
  check_euler(folder, report);
}

}  // namespace mm::oracle
