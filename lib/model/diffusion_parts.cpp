#include "lib/model/diffusion_parts.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/activations.h"
#include "lib/model/products.h"

namespace mm::model {

at::Tensor unfold_patches(const at::Tensor& pictures, int64_t patch) {
  const int64_t n = pictures.size(0), channels = pictures.size(1), height = pictures.size(2),
                width = pictures.size(3);
  if (height % patch != 0 || width % patch != 0) {
    throw DataError(
        "a picture of {} x {} for a model with patches of {}; use bucket sizes that "
        "are multiples of the patch",
        height, width, patch);
  }
  const int64_t rows = height / patch, columns = width / patch;
  return pictures.reshape({n, channels, rows, patch, columns, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({n, rows * columns, channels * patch * patch});
}

at::Tensor fold_patches(const at::Tensor& tokens, int64_t patch, int64_t rows, int64_t columns) {
  const int64_t n = tokens.size(0), channels = tokens.size(2) / (patch * patch);
  return tokens.reshape({n, rows, columns, patch, patch, channels})
      .permute({0, 5, 1, 3, 2, 4})
      .reshape({n, channels, rows * patch, columns * patch});
}

std::vector<at::Tensor> modulation_parts(const at::Tensor& modulation, int64_t count) {
  if (modulation.dim() == 3) return modulation.split(1, 1);
  return modulation.view({modulation.size(0), count, modulation.size(1) / count}).split(1, 1);
}

FeedForward declare_feed_forward(const DeclareParams& declare, const std::string& name,
                                 int64_t hidden) {
  return {declare.linear(name + ".net.0.proj", 4 * hidden, hidden),
          declare.linear(name + ".net.2", hidden, 4 * hidden)};
}

at::Tensor apply(const FeedForward& layer, const ParamView& params, const at::Tensor& x) {
  return apply(layer.out, params, gelu_tanh(apply(layer.in, params, x)));
}

void append_params(std::vector<ParamId>& list, const FeedForward& layer) {
  append_params(list, layer.in);
  append_params(list, layer.out);
}

DiffusionInput diffusion_input(const DiffusionConfig& config, const Objective& objective,
                               const Batch& batch) {
  DiffusionInput in = batch.diffusion ? *batch.diffusion : DiffusionInput{};
  const auto scale = static_cast<double>(objective.steps);
  if (!in.times.defined() && in.sigmas.defined()) in.times = in.sigmas * scale;
  if (!in.times.defined()) {
    MM_CHECK(!in.noisy.defined() && !in.noise.defined(), "pictures without times");
    in.noise = at::empty({0, config.in_channels, config.patch, config.patch}, at::kFloat);
    in.clean = in.noise;
    in.times = at::empty({0}, at::kFloat);
  }
  if (!in.sigmas.defined() && objective.is_flow()) in.sigmas = in.times / scale;
  const int64_t n = in.times.size(0);
  const auto missing = [&](const char* what) {
    MM_CHECK(n == 0, "{} pictures without {}", n, what);
  };
  if (!in.noisy.defined() && !in.noise.defined()) missing("noise");
  if (config.family == DiffusionFamily::kDit && !in.labels.defined()) {
    missing("labels");
    in.labels = at::empty({0}, at::kLong);
  }
  if (config.family == DiffusionFamily::kSd3 && !in.pooled.defined()) {
    missing("pooled captions");
    in.pooled = at::empty({0, config.pooled_width}, in.times.options());
  }
  if (config.size_embedders && !in.resolutions.defined()) {
    missing("resolutions");
    in.resolutions = at::empty({0, 2}, in.times.options());
    in.aspect_ratios = at::empty({0, 1}, in.times.options());
  }
  return in;
}

at::Tensor DiffusionBuild::clean_pictures(const DiffusionInput& input,
                                          std::span<const at::Tensor> in) const {
  const at::Tensor& like = input.noisy.defined() ? input.noisy : input.noise;
  if (clean < 0) return input.clean;
  // An empty micro-batch need not say how large its pictures would be.
  return in.back().size(0) == 0 ? at::zeros_like(like) : in.back().to(like.scalar_type());
}

at::Tensor DiffusionBuild::noisy_pictures(const Batch& batch,
                                          std::span<const at::Tensor> in) const {
  const DiffusionInput whole = input(batch);
  if (whole.noisy.defined()) return whole.noisy;
  return process->noisy(clean_pictures(whole, in), whole);
}

PatchEmbedding declare_patch_embedding(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "pos_embed.");
  PatchEmbedding e;
  e.proj.weight = declare.tensor("proj.weight", {c.hidden(), c.in_channels, c.patch, c.patch},
                                 Init::kXavierMatrix);
  e.proj.bias = declare.tensor("proj.bias", {c.hidden()}, Init::kZeros);
  const auto base = static_cast<double>(c.sample_size / c.patch);
  if (c.family != DiffusionFamily::kSd3) {
    e.positions = std::make_shared<PositionTables>(c.hidden(), GridScale{base, c.position_scale});
    return e;
  }
  const int64_t side = c.position_table;
  e.table = declare.tensor("pos_embed", {1, side * side, c.hidden()}, Init::kSincosGrid,
                           base / static_cast<double>(side) / c.position_scale);
  model.params[e.table].decay = false;
  model.params[e.table].fixed = true;
  return e;
}

std::vector<ParamId> params_of(const PatchEmbedding& embedding) {
  std::vector<ParamId> ids;
  append_params(ids, embedding.proj);
  if (embedding.table >= 0) ids.push_back(embedding.table);
  return ids;
}

at::Tensor apply(const PatchEmbedding& e, const DiffusionConfig& config, const ParamView& params,
                 const at::Tensor& pictures) {
  const at::Tensor weight = params.get(e.proj.weight).flatten(1);
  const int64_t rows = pictures.size(2) / config.patch, columns = pictures.size(3) / config.patch;
  const at::Tensor patches =
      linear_product(unfold_patches(pictures, config.patch).to(weight.scalar_type()), weight,
                     params.get(e.proj.bias));
  const at::Tensor positions = e.table >= 0 ? centre_crop(params.get(e.table), rows, columns)
                                            : e.positions->get(rows, columns, weight);
  return patches + positions;
}

}  // namespace mm::model
