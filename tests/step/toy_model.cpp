#include "tests/step/toy_model.h"

#include <ATen/ATen.h>

namespace mm::step::toy {
namespace {

using Tensors = std::vector<at::Tensor>;
using Inputs = std::span<const at::Tensor>;
using model::SegmentContext;

model::Segment segment(std::string name, std::vector<model::Slot> in, std::vector<model::Slot> out,
                       std::vector<model::ParamId> params) {
  return {.name = std::move(name),
          .in = std::move(in),
          .out = std::move(out),
          .params = std::move(params)};
}

model::Block vision(model::Slot features) {
  model::Segment s = segment("tower", {}, {features}, {kTower});
  s.forward = [](const SegmentContext& c, Inputs) -> Tensors {
    const at::Tensor patches = c.batch.pixel_values.flatten(2).transpose(1, 2).reshape({-1, 3});
    return {at::tanh(at::linear(patches, c.params.get(kTower)))};
  };
  return {"vision", model::Part::kVision, {s}};
}

model::Block projector(model::Slot features, model::Slot projected) {
  model::Segment s = segment("project", {features}, {projected}, {kProjector});
  s.forward = [](const SegmentContext& c, Inputs in) -> Tensors {
    return {at::gelu(at::linear(in[0], c.params.get(kProjector)))};
  };
  return {"projector", model::Part::kProjector, {s}};
}

model::Block embed(model::Slot text, model::Slot projected, model::Slot x0) {
  model::Segment lookup = segment("lookup", {}, {text}, {kEmbedding});
  lookup.forward = [](const SegmentContext& c, Inputs) -> Tensors {
    return {at::embedding(c.params.get(kEmbedding), c.batch.tokens)};
  };
  model::Segment splice = segment("splice", {text, projected}, {x0}, {});
  splice.forward = [](const SegmentContext& c, Inputs in) -> Tensors {
    return {in[0].index_copy(0, c.batch.image_token_index, in[1])};
  };
  return {"embed", model::Part::kLanguage, {lookup, splice}};
}

model::Block layer1(model::Slot x0, model::Slot inner, model::Slot x1) {
  model::Segment first = segment("in", {x0}, {inner}, {kLayer1In});
  first.forward = [](const SegmentContext& c, Inputs in) -> Tensors {
    return {at::tanh(at::linear(in[0], c.params.get(kLayer1In)))};
  };
  model::Segment second = segment("out", {x0, inner}, {x1}, {kLayer1Out});
  second.forward = [](const SegmentContext& c, Inputs in) -> Tensors {
    return {in[0] + at::linear(in[1], c.params.get(kLayer1Out))};
  };
  return {"layer1", model::Part::kLanguage, {first, second}};
}

model::Block layer2(model::Slot x0, model::Slot x1, model::Slot x2) {
  model::Segment s = segment("mix", {x1, x0}, {x2}, {kLayer2});
  s.forward = [](const SegmentContext& c, Inputs in) -> Tensors {
    return {in[0] + at::tanh(at::linear(in[0], c.params.get(kLayer2))) * in[1]};
  };
  return {"layer2", model::Part::kLanguage, {s}};
}

model::Block head(const model::Model& model, model::Slot x2) {
  model::Segment s = segment("head", {x2}, {model.loss_slot, model.logits_slot}, {kEmbedding});
  s.yields_loss = true;
  s.forward = [](const SegmentContext& c, Inputs in) -> Tensors {
    const at::Tensor logits = at::linear(in[0], c.params.get(kEmbedding));
    const at::Tensor rows = c.batch.targets.ge(0).nonzero().squeeze(1);
    const at::Tensor targets = c.batch.targets.index_select(0, rows).unsqueeze(1);
    const at::Tensor loss =
        -at::log_softmax(logits.index_select(0, rows), 1).gather(1, targets).sum();
    return {loss, c.batch.want_logits ? logits : at::Tensor()};
  };
  return {"head", model::Part::kLanguage, {s}};
}

at::Tensor wave(std::vector<int64_t> shape, double phase) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return at::sin(at::arange(count, at::kDouble) * 1.7 + phase).reshape(shape);
}

}  // namespace

model::Model make_model() {
  model::Model m;
  auto add_param = [&](const char* name, std::vector<int64_t> shape, model::Part part) {
    m.add_param({.name = name, .shape = std::move(shape), .part = part});
  };
  add_param("tower", {kHidden, 3}, model::Part::kVision);
  add_param("projector", {kHidden, kHidden}, model::Part::kProjector);
  add_param("embedding", {kVocab, kHidden}, model::Part::kLanguage);
  for (const char* name : {"layer1.in", "layer1.out", "layer2"})
    add_param(name, {kHidden, kHidden}, model::Part::kLanguage);
  std::vector<model::Slot> slots;
  for (const char* name : {"features", "projected", "text", "x0", "inner", "x1", "x2"})
    slots.push_back(m.add_slot(name));
  m.loss_slot = m.add_slot("loss");
  m.logits_slot = m.add_slot("logits");
  m.blocks = {vision(slots[0]),
              projector(slots[0], slots[1]),
              embed(slots[2], slots[1], slots[3]),
              layer1(slots[3], slots[4], slots[5]),
              layer2(slots[3], slots[5], slots[6]),
              head(m, slots[6])};
  return m;
}

std::vector<at::Tensor> make_weights(const model::Model& model, int seed) {
  std::vector<at::Tensor> weights;
  for (const model::ParamSpec& spec : model.params) {
    weights.push_back(wave(spec.shape, 0.3 * seed + static_cast<double>(weights.size())) * 0.6);
  }
  return weights;
}

model::Batch make_batch(const BatchShape& shape, int seed) {
  const int64_t T = shape.tokens, I = shape.images;
  model::Batch batch;
  batch.tokens = (at::arange(T, at::kLong) * 3 + seed) % kVocab;
  batch.targets = (at::arange(T, at::kLong) * 2 + seed + 1) % kVocab;
  if (shape.skip > 0)
    batch.targets.masked_fill_(at::arange(T, at::kLong).remainder(shape.skip).eq(0), -100);
  batch.positions = at::arange(T, at::kLong);
  batch.cu_seqlens = {0, T};
  batch.image_token_index = at::arange(I * kPatches, at::kLong);
  batch.pixel_values = wave({I, 3, 1, kPatches}, seed);
  batch.sizes = {.tokens = T, .samples = 1, .images = I, .patches = kPatches};
  batch.sizes.targets = batch.targets.ge(0).sum().item<int64_t>();
  return batch;
}

model::Batch concatenate(const model::Batch& a, const model::Batch& b) {
  model::Batch batch = a;
  batch.tokens = at::cat({a.tokens, b.tokens});
  batch.targets = at::cat({a.targets, b.targets});
  batch.positions = at::cat({a.positions, b.positions});
  batch.cu_seqlens.push_back(a.sizes.tokens + b.sizes.tokens);
  batch.image_token_index = at::cat({a.image_token_index, b.image_token_index + a.sizes.tokens});
  batch.pixel_values = at::cat({a.pixel_values, b.pixel_values});
  batch.sizes.tokens += b.sizes.tokens;
  batch.sizes.images += b.sizes.images;
  batch.sizes.targets += b.sizes.targets;
  batch.sizes.samples += b.sizes.samples;
  return batch;
}

}  // namespace mm::step::toy
