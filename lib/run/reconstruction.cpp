#include "lib/run/reconstruction.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/run_dir.h"
#include "lib/data/collate.h"
#include "lib/model/vae_training.h"
#include "lib/run/picture_bytes.h"
#include "lib/run/recipe.h"
#include "lib/run/run_snapshot.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

/// [0, 1] as it is.
constexpr PixelNorm kUnit{.mean = {0, 0, 0}, .std = {1, 1, 1}};

/// [1, 1, k, k], sum 1.
at::Tensor gaussian_window(int64_t k) {
  constexpr double kDeviation = 1.5;
  const at::Tensor at = at::arange(k, at::kDouble) - static_cast<double>(k - 1) / 2;
  const at::Tensor row = (at.square() / (-2 * kDeviation * kDeviation)).exp();
  const at::Tensor window = row.unsqueeze(1) * row.unsqueeze(0);
  return (window / window.sum()).view({1, 1, k, k});
}

double structural_similarity(const at::Tensor& a, const at::Tensor& b) {
  const int64_t side = std::min<int64_t>({11, a.size(1), a.size(2)});
  const at::Tensor window = gaussian_window(side - (side % 2 == 0 ? 1 : 0));
  const auto blurred = [&](const at::Tensor& x) { return at::conv2d(x.unsqueeze(1), window); };
  constexpr double c1 = 0.01 * 0.01, c2 = 0.03 * 0.03;
  const at::Tensor ma = blurred(a), mb = blurred(b);
  const at::Tensor va = blurred(a * a) - ma * ma, vb = blurred(b * b) - mb * mb;
  const at::Tensor both = blurred(a * b) - ma * mb;
  const at::Tensor ssim =
      (2 * ma * mb + c1) * (2 * both + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
  return ssim.mean().item<double>();
}

at::Tensor channels(const std::array<float, 3>& values) {
  return at::tensor({values[0], values[1], values[2]}, at::kFloat).view({3, 1, 1});
}

/// [3, H, W] in [0, 1] -> the same, rebuilt and clamped.
at::Tensor rebuilt(const TrainedVae& trained, const at::Tensor& picture) {
  const at::NoGradGuard no_grad;
  const at::Tensor mean = channels(trained.norm.mean), std = channels(trained.norm.std);
  const model::Posterior q =
      model::posterior_of(trained.vae->moments(((picture - mean) / std).unsqueeze(0)));
  const at::Tensor latents = model::scaled_latents(trained.vae->config(), q.mean);
  return (trained.vae->decode(latents)[0] * std + mean).nan_to_num().clamp(0, 1);
}

void check_set(const TrainedVae& trained, const data::Dataset& set) {
  const std::string origin = set.directory().string();
  const int64_t factor = trained.vae->config().factor();
  if (set.manifest().pictures.buckets.empty())
    throw UsageError("{}: not a bucketed set, and {} rebuilds pictures by buckets", origin,
                     trained.run.string());
  for (const data::BucketShape& bucket : set.manifest().pictures.buckets) {
    if (bucket.height % factor != 0 || bucket.width % factor != 0)
      throw UsageError("{}: has pictures of {}x{} pixels, sides must be multiples of {}", origin,
                       bucket.width, bucket.height, factor);
  }
  if (set.rows() == 0) throw DataError("{}: no sample in it", origin);
}

at::Tensor picture_of(const data::Dataset& set, std::span<const data::SampleSize> sizes,
                      uint32_t row) {
  const data::Assembled one =
      data::assemble(set, sizes, data::make_pack(sizes, std::span(&row, 1)));
  if (!one.bad.empty())
    throw DataError("{}: {}", set.directory().string(), one.bad.front().message);
  return same_sized_pixels(one.batch, at::kFloat, kUnit)[0];
}

}  // namespace

PictureError compare_pictures(const at::Tensor& real, const at::Tensor& rebuilt) {
  MM_CHECK(real.sizes() == rebuilt.sizes() && real.dim() == 3, "pictures of one size");
  const at::Tensor a = real.to(at::kDouble), b = rebuilt.to(at::kDouble);
  constexpr double kLeast = 1e-10;
  const double squared = std::max(kLeast, (a - b).square().mean().item<double>());
  return {.l1 = (a - b).abs().mean().item<double>(),
          .psnr = -10 * std::log10(squared),
          .ssim = structural_similarity(a, b)};
}

bool is_vae_run(const fs::path& run) {
  return fs::exists(run / "recipe.toml") &&
         read_recipe(run / "recipe.toml", {}, RecipePaths::kOfRun).model.family == "vae";
}

TrainedVae open_trained_vae(const fs::path& run, Weights weights) {
  const Recipe recipe = read_recipe(RunDir::open(run).recipe(), {}, RecipePaths::kOfRun);
  if (recipe.model.family != "vae")
    throw UsageError("{}: a run of family {}, expected vae", run.string(), recipe.model.family);
  const state::Checkpoint checkpoint = state::open_checkpoint(run);
  const std::string origin = checkpoint.directory.string();
  const RunSnapshot snapshot = RunSnapshot::from_json(checkpoint.manifest.state, origin);
  const model::VaeConfig config = model::vae_config_from_json(snapshot.config, origin);
  const TrainedWeights trained =
      read_trained_weights(checkpoint, model::build_vae(config, {}), weights);
  return {.run = run,
          .step = snapshot.global_step,
          .averaged = trained.averaged,
          .vae = std::make_unique<const model::Vae>(config, trained.values, at::kFloat),
          .norm = pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std)};
}

EvalResult evaluate_reconstruction(const TrainedVae& trained, const data::Dataset& set,
                                   const ReconstructionOptions& options) {
  check_set(trained, set);
  const std::vector<data::SampleSize> sizes = set.sizes();
  const size_t rows =
      options.limit > 0 ? std::min(sizes.size(), static_cast<size_t>(options.limit)) : sizes.size();
  EvalResult result{.data = set.directory().string(), .step = trained.step};
  PictureError sum;
  for (size_t row = 0; row < rows; ++row) {
    const at::Tensor real = picture_of(set, sizes, static_cast<uint32_t>(row));
    const at::Tensor made = rebuilt(trained, real);
    const PictureError error = compare_pictures(real, made);
    sum.l1 += error.l1, sum.psnr += error.psnr, sum.ssim += error.ssim;
    if (row < options.shown)
      result.rebuilt.push_back({std::string(set.key(row)), error.psnr,
                                png_data_uri(to_image(real, kUnit)),
                                png_data_uri(to_image(made, kUnit))});
  }
  const auto count = static_cast<double>(rows);
  result.tasks["reconstruction"] = {{"samples", rows},          {"averaged", trained.averaged},
                                    {"l1", sum.l1 / count},     {"psnr", sum.psnr / count},
                                    {"ssim", sum.ssim / count}, {"data", result.data}};
  return result;
}

}  // namespace mm::run
