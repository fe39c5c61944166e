#include <ATen/ATen.h>

#include <map>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/eager.h"
#include "lib/model/vae_load.h"
#include "lib/model/vae_training.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

constexpr double kMomentsTolerance = 1e-5, kDecodedTolerance = 2e-5, kStdTolerance = 1e-5;

using Named = std::map<std::string, at::Tensor>;

Named run(const model::Vae& vae, const at::Tensor& image, const at::Tensor& eps) {
  const at::NoGradGuard no_grad;
  const at::Tensor moments = vae.moments(image);
  const model::Posterior q = model::posterior_of(moments);
  const at::Tensor latents = model::scaled_latents(vae.config(), q.sample(eps));
  return {{"moments", moments},
          {"mean", q.mean},
          {"logvar_clamped", q.log_variance},
          {"latent_scaled", latents},
          {"decoded_from_sample", vae.decode(latents)},
          {"decoded_from_mean", vae.decode(model::scaled_latents(vae.config(), q.mean))}};
}

// The training model's own way through the same weights: what it draws, decodes and counts as KL.
void check_training_model(const model::LoadedVae& loaded, const at::Tensor& image,
                          const at::Tensor& eps, const Named& want, Folder& folder,
                          Report& report) {
  const model::Model m = model::build_vae(loaded.config);
  const model::SimpleParams params(m, loaded.values,
                                   std::vector<bool>(loaded.values.size(), false));
  auto input = std::make_shared<model::DiffusionInput>();
  input->clean = image;
  input->noise = eps;
  model::Batch batch;
  batch.diffusion = input;
  const model::SlotValues slots = model::eager_forward(m, params, batch);
  report.number(
      "decoded_from_sample (training model)",
      relative_error(slots[model::find_slot(m, "vae.decoder.out")], want.at("decoded_from_sample")),
      kDecodedTolerance, "rel");
  const at::Tensor kl =
      slots[model::find_slot(m, "vae.terms")].select(1, 1) * static_cast<double>(image[0].numel());
  const auto per_sample = folder.numbers("kl_to_standard_normal_per_sample");
  report.number("kl_to_standard_normal_per_sample",
                relative_error(kl, at::tensor(per_sample, at::kDouble)), kMomentsTolerance, "rel");
}

}  // namespace

void check_vae(Folder& folder, Report& report) {
  folder.set_aside({"seed", "shape", "measured"});
  const model::LoadedVae loaded = model::load_vae(folder.directory());
  const model::Vae vae(loaded.config, loaded.values, at::kFloat);
  const double scale = folder.number("scaling_factor");
  report.exact("scaling_factor", scale == loaded.config.scale,
               fmt::format("{} here", loaded.config.scale));
  const at::Tensor image = folder.tensor("image"), eps = folder.tensor("eps");
  Named want;
  for (const auto& [name, got] : run(vae, image, eps)) {
    want[name] = folder.tensor(name);
    const bool decoded = name.starts_with("decoded");
    report.number(name, relative_error(got, want[name]),
                  decoded ? kDecodedTolerance : kMomentsTolerance, "rel");
    report.number(
        "std/" + name,
        relative_error(got.to(at::kDouble).std().item<double>(), folder.number("std/" + name)),
        kStdTolerance, "rel");
  }
  check_training_model(loaded, image, eps, want, folder, report);
}

}  // namespace mm::oracle
