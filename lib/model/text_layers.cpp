#include "lib/model/text_layers.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/norms.h"

namespace mm::model {

TextNorm declare_text_norm(const DeclareParams& declare, const std::string& name, int64_t width,
                           double eps) {
  return {declare.tensor(name + ".weight", {width}, Init::kOnes),
          declare.tensor(name + ".bias", {width}, Init::kZeros), eps};
}

at::Tensor apply(const TextNorm& norm, const ParamView& params, const at::Tensor& x) {
  return layer_norm(x, params.get(norm.weight), params.get(norm.bias), norm.eps);
}

void append_params(std::vector<ParamId>& list, const TextNorm& norm) {
  list.insert(list.end(), {norm.weight, norm.bias});
}

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads});
}

at::Tensor mean_of_tokens(const at::Tensor& hidden, const at::Tensor& mask) {
  const at::Tensor keep = mask.unsqueeze(2);
  const at::Tensor sum = hidden.masked_fill(keep.logical_not(), 0).sum(1);
  return sum / mask.sum(1, /*keepdim=*/true).clamp_min(1).to(hidden.scalar_type());
}

TextStage text_layer_stage(int64_t number, int64_t width, int64_t inner) {
  const auto d = static_cast<double>(width), f = static_cast<double>(inner);
  return {.name = "text.layers." + std::to_string(number),
          .weights = 4 * d * d + 2 * d * f,
          .width = d,
          .saved = 8 * d + 2 * f};
}

TextStage norm_stage(const TextNorm& norm) {
  TextStage stage{.name = "text.norm"};
  append_params(stage.params, norm);
  stage.forward = [norm](const ParamView& params, const PaddedText&, const at::Tensor& x) {
    return apply(norm, params, x);
  };
  return stage;
}

void require_heads(const Section& config, int64_t width, int64_t heads) {
  if (width % heads != 0)
    throw DataError("{}: {} channels are no multiple of {} heads", config.where, width, heads);
}

bool names_architecture(const Section& config, const std::string& name) {
  if (!config.has("architectures") || !config.json.at("architectures").is_array()) return false;
  return std::ranges::any_of(config.json.at("architectures"),
                             [&](const Json& at) { return at == name; });
}

}  // namespace mm::model
