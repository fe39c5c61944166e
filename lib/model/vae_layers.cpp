#include "lib/model/vae_layers.h"

#include <ATen/ATen.h>

#include "lib/model/attention_product.h"

namespace mm::model {
namespace {

constexpr double kNormEps = 1e-6;

}  // namespace

at::Tensor apply(const Convolution& layer, const ParamView& params, const at::Tensor& x) {
  const at::Tensor weight = params.get(layer.weight), bias = params.get(layer.bias);
  if (layer.stride == 1) return at::conv2d(x, weight, bias, 1, layer.side / 2);
  return at::conv2d(at::constant_pad_nd(x, {0, 1, 0, 1}), weight, bias, layer.stride);
}

at::Tensor apply(const GroupNorm& layer, const ParamView& params, const at::Tensor& x) {
  return at::group_norm(x, layer.groups, params.get(layer.weight), params.get(layer.bias),
                        kNormEps);
}

at::Tensor apply(const ResNet& layer, const ParamView& params, const at::Tensor& x) {
  const at::Tensor inner = apply(layer.conv1, params, at::silu(apply(layer.norm1, params, x)));
  const at::Tensor h = apply(layer.conv2, params, at::silu(apply(layer.norm2, params, inner)));
  return layer.shortcut.weight < 0 ? x + h : apply(layer.shortcut, params, x) + h;
}

at::Tensor apply(const PixelAttention& layer, const ParamView& params, const at::Tensor& x) {
  const int64_t pictures = x.size(0), channels = x.size(1), pixels = x.size(2) * x.size(3);
  const at::Tensor rows = apply(layer.norm, params, x).flatten(2).transpose(1, 2);
  // fp16's in fp32: one head is hundreds of channels wide, and scores may pass fp16's range.
  const at::ScalarType wide = x.scalar_type() == at::kHalf ? at::kFloat : x.scalar_type();
  const auto one_head = [&](const Linear& projection) {
    return apply(projection, params, rows).view({pictures, 1, pixels, channels}).to(wide);
  };
  // One head of many rows: LibTorch's attention shares out the rows among threads.
  const at::Tensor seen =
      attention_product(one_head(layer.q), one_head(layer.k), one_head(layer.v)).squeeze(1);
  const at::Tensor mixed = apply(layer.out, params, seen.to(x.scalar_type()));
  return x + mixed.transpose(1, 2).reshape(x.sizes());
}

at::Tensor twice_as_large(const at::Tensor& x) {
  return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
}

ParamId VaeDeclare::tensor(const std::string& name, std::vector<int64_t> shape, Init init) {
  const bool decay = shape.size() >= 2;
  return model_.add_param({.name = prefix_ + name,
                           .shape = std::move(shape),
                           .part = Part::kVae,
                           .decay = decay,
                           .init = init});
}

Convolution VaeDeclare::conv(const std::string& name, Widths widths, int64_t side, int64_t stride) {
  return {
      .weight = tensor(name + ".weight", {widths.out, widths.in, side, side}, Init::kFanInUniform),
      .bias = tensor(name + ".bias", {widths.out}, Init::kZeros),
      .in = widths.in,
      .out = widths.out,
      .side = side,
      .stride = stride};
}

GroupNorm VaeDeclare::norm(const std::string& name, int64_t channels) {
  return {tensor(name + ".weight", {channels}, Init::kOnes),
          tensor(name + ".bias", {channels}, Init::kZeros), groups_, channels};
}

Linear VaeDeclare::linear(const std::string& name, int64_t channels) {
  return {tensor(name + ".weight", {channels, channels}, Init::kFanInUniform),
          tensor(name + ".bias", {channels}, Init::kZeros)};
}

ResNet VaeDeclare::resnet(const std::string& name, Widths widths) {
  ResNet layer{.norm1 = norm(name + ".norm1", widths.in),
               .norm2 = norm(name + ".norm2", widths.out),
               .conv1 = conv(name + ".conv1", widths, 3),
               .conv2 = conv(name + ".conv2", {widths.out, widths.out}, 3)};
  if (widths.in != widths.out) layer.shortcut = conv(name + ".conv_shortcut", widths, 1);
  return layer;
}

PixelAttention VaeDeclare::attention(const std::string& name, int64_t channels) {
  return {norm(name + ".group_norm", channels), linear(name + ".to_q", channels),
          linear(name + ".to_k", channels), linear(name + ".to_v", channels),
          linear(name + ".to_out.0", channels)};
}

void append_params(std::vector<ParamId>& list, const Convolution& layer) {
  if (layer.weight >= 0) list.insert(list.end(), {layer.weight, layer.bias});
}

void append_params(std::vector<ParamId>& list, const GroupNorm& layer) {
  list.insert(list.end(), {layer.weight, layer.bias});
}

void append_params(std::vector<ParamId>& list, const ResNet& layer) {
  append_params(list, layer.norm1);
  append_params(list, layer.conv1);
  append_params(list, layer.norm2);
  append_params(list, layer.conv2);
  append_params(list, layer.shortcut);
}

void append_params(std::vector<ParamId>& list, const PixelAttention& layer) {
  append_params(list, layer.norm);
  for (const Linear* projection : {&layer.q, &layer.k, &layer.v, &layer.out})
    append_params(list, *projection);
}

double weights_of(const Convolution& layer) {
  return static_cast<double>(layer.in * layer.out * layer.side * layer.side);
}

double weights_of(const ResNet& layer) {
  const double shortcut = layer.shortcut.weight < 0 ? 0 : weights_of(layer.shortcut);
  return weights_of(layer.conv1) + weights_of(layer.conv2) + shortcut;
}

}  // namespace mm::model
