#include "tests/model/tiny_llava.h"

#include <ATen/ATen.h>

#include "lib/model/cross_entropy.h"
#include "lib/model/initial_draw.h"

namespace mm::model::test {
namespace {

at::Tensor picture(const VisionConfig& config, int64_t seed) {
  const ParamSpec spec{.name = "picture " + std::to_string(seed),
                       .shape = {config.channels, config.image_size, config.image_size},
                       .init_std = 1.0};
  return InitialDraw(spec, static_cast<uint64_t>(seed)).whole();
}

void append(Batch& batch, const TinySample& sample, const LlavaConfig& config,
            std::vector<int64_t>& tokens, std::vector<int64_t>& targets,
            std::vector<int64_t>& places) {
  const int64_t begin = batch.cu_seqlens.back();
  for (int64_t i = 0; i < sample.pictures * config.patches_per_image(); ++i) {
    places.push_back(begin + i);
    tokens.push_back(config.image_token_index);
    targets.push_back(kNoTarget);
  }
  for (size_t i = 0; i < sample.text.size(); ++i) {
    tokens.push_back(sample.text[i]);
    targets.push_back(i + 1 < sample.text.size() ? sample.text[i + 1] : kNoTarget);
  }
  const auto end = static_cast<int64_t>(tokens.size());
  const auto length = static_cast<double>(end - begin);
  batch.cu_seqlens.push_back(end);
  batch.sizes.attention_pairs += length * (length + 1) / 2;
}

at::Tensor positions_of(const std::vector<int64_t>& borders) {
  std::vector<at::Tensor> parts{at::empty({0}, at::kLong)};
  for (size_t i = 1; i < borders.size(); ++i)
    parts.push_back(at::arange(borders[i] - borders[i - 1], at::kLong));
  return at::cat(parts);
}

}  // namespace

LlavaConfig tiny_config() {
  LlavaConfig config;
  config.vision = {
      .hidden = 16, .intermediate = 32, .layers = 3, .heads = 2, .image_size = 8, .patch_size = 4};
  config.text.vocab = 50;
  config.text.hidden = 24;
  config.text.intermediate = 40;
  config.text.layers = 2;
  config.text.heads = 4;
  config.text.kv_heads = 2;
  config.text.head_size = 6;
  config.text.norm_eps = 1e-5;
  config.image_token_index = 49;
  return config;
}

Batch tiny_batch(const LlavaConfig& config, const std::vector<TinySample>& samples,
                 at::ScalarType dtype) {
  Batch batch;
  batch.cu_seqlens = {0};
  std::vector<int64_t> tokens, targets, places;
  const auto side = config.vision.image_size;
  std::vector<at::Tensor> pictures{at::empty({0, config.vision.channels, side, side}, at::kFloat)};
  for (const TinySample& sample : samples) {
    append(batch, sample, config, tokens, targets, places);
    for (int64_t i = 0; i < sample.pictures; ++i) {
      const int64_t seed = sample.text.empty() ? i : sample.text.front() * 10 + i;
      pictures.push_back(picture(config.vision, seed).unsqueeze(0));
    }
  }
  batch.tokens = at::tensor(tokens, at::kLong);
  batch.targets = at::tensor(targets, at::kLong);
  batch.image_token_index = at::tensor(places, at::kLong);
  batch.pixel_values = at::cat(pictures).to(dtype);
  batch.positions = positions_of(batch.cu_seqlens);
  batch.sizes.tokens = batch.tokens.size(0);
  batch.sizes.samples = static_cast<int64_t>(samples.size());
  batch.sizes.images = batch.pixel_values.size(0);
  batch.sizes.patches = config.patches_per_image();
  batch.sizes.targets = batch.targets.ne(kNoTarget).sum().item<int64_t>();
  return batch;
}

SimpleParams lively_params(const Model& model, uint64_t seed, at::ScalarType dtype) {
  std::vector<at::Tensor> values;
  for (const ParamSpec& spec : model.params) {
    const double mean = spec.init == Init::kOnes ? 1.0 : 0.0;
    ParamSpec drawn = spec;
    drawn.init = Init::kNormal;
    drawn.init_std = 0.2;
    values.push_back((InitialDraw(drawn, seed).whole() + mean).to(dtype));
  }
  return SimpleParams(model, std::move(values), std::vector<bool>(model.params.size(), true));
}

double relative(const at::Tensor& a, const at::Tensor& b) {
  const double error = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return error == 0 ? 0 : error / b.to(at::kDouble).norm().item<double>();
}

at::Tensor grad_or_zero(const Model& model, const SimpleParams& params, ParamId id) {
  return params.grad(id).defined() ? params.grad(id)
                                   : at::zeros(model.params[id].shape, at::kDouble);
}

}  // namespace mm::model::test
