#include "lib/model/text_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/ckpt/text_encoder_names.h"
#include "lib/model/bert_encoder.h"
#include "lib/model/clip_text.h"
#include "lib/model/config_section.h"
#include "lib/model/strict_load.h"
#include "lib/model/t5_encoder.h"

namespace mm::model {
namespace {

std::string model_type(const Json& config, const std::string& origin) {
  if (!config.is_object()) throw DataError("{}: expected a JSON object", origin);
  return Section{config, origin}.word("model_type", "(missing)");
}

void check_text(const TextEncoder& encoder, const PaddedText& text) {
  MM_CHECK(text.ids.dim() == 2 && text.mask.sizes() == text.ids.sizes(),
           "ids have {} elements, their mask {}", text.ids.numel(), text.mask.numel());
  if (encoder.max_length > 0 && text.ids.size(1) > encoder.max_length)
    throw DataError("captions of {} tokens; the text encoder has {} positions; cut them",
                    text.ids.size(1), encoder.max_length);
  if (text.ids.numel() == 0) return;
  const auto low = text.ids.min().item<int64_t>(), high = text.ids.max().item<int64_t>();
  if (low < 0 || high >= encoder.vocab)
    throw DataError("token {}: the text encoder's vocabulary has {}; use its own tokenizer",
                    low < 0 ? low : high, encoder.vocab);
}

SegmentCost cost_of(const TextStage& stage, const Sizes& sizes) {
  const auto tokens = static_cast<double>(sizes.tokens);
  SegmentCost cost;
  cost.attention_flops = 2 * 4 * sizes.attention_pairs * stage.width;  // both directions
  cost.forward_flops = 2 * tokens * stage.weights + cost.attention_flops;
  cost.saved_bytes = 2 * tokens * stage.saved;
  return cost;
}

/// Appends one stage as a block; `in` -1: the embeddings.
Slot add_stage(Model& model, const TextStage& stage, Slot in, const TextPadding& padding) {
  const Slot out = model.add_slot(stage.name);
  Segment segment{.name = stage.name, .out = {out}, .params = stage.params};
  if (in >= 0) segment.in = {in};
  segment.forward = [forward = stage.forward, padding](const SegmentContext& context,
                                                       std::span<const at::Tensor> x) {
    const PaddedText text = pad_text(context.batch, padding);
    return std::vector<at::Tensor>{forward(context.params, text, x.empty() ? at::Tensor() : x[0])};
  };
  segment.cost = [stage](const Sizes& sizes) { return cost_of(stage, sizes); };
  model.blocks.push_back({stage.name, Part::kTextEncoder, {std::move(segment)}});
  return out;
}

Json read_config(const std::filesystem::path& directory) {
  return read_json_file(directory / "config.json");
}

/// Whether the file has BERT's pooler, which sentence encoders often lack.
bool has_pooler(const ckpt::HfWeights& weights) {
  return std::ranges::any_of(weights.tensors(), [](const auto& entry) {
    return entry.first.ends_with("pooler.dense.weight");
  });
}

TextEncoder declare(Model& model, const Json& config, const std::string& origin,
                    const std::string& prefix, bool pooler) {
  const std::string type = model_type(config, origin);
  const Section section{config, origin};
  if (type == "clip_text_model") return declare_clip_text(model, section, prefix);
  if (type == "t5") return declare_t5_encoder(model, section, prefix);
  if (type == "bert") return declare_bert_encoder(model, section, prefix, pooler);
  throw DataError("{}.model_type is \"{}\"; expected clip_text_model, t5 or bert", origin, type);
}

std::vector<at::Tensor> load(const Model& model, const ckpt::HfWeights& weights, const Json& config,
                             const std::string& origin) {
  const std::string type = model_type(config, origin);
  return load_strictly(
      model, weights,
      {.origin = origin,
       .respell =
           [type](std::string_view name) { return ckpt::published_text_encoder_name(type, name); },
       .copies = {{ckpt::kT5TableCopy, ckpt::kT5Table}}});
}

std::vector<at::Tensor> load_as(const Model& model, const std::filesystem::path& directory,
                                at::ScalarType dtype) {
  const auto weights = ckpt::HfWeights::open(directory);
  std::vector<at::Tensor> values = load(model, weights, read_config(directory), directory.string());
  for (at::Tensor& value : values) value = value.to(dtype);
  return values;
}

}  // namespace

PaddedText pad_text(const std::vector<std::vector<int64_t>>& captions, const TextPadding& padding) {
  int64_t length = padding.length;
  if (length == 0)
    for (const auto& caption : captions) length = std::max(length, std::ssize(caption));
  const auto rows = std::ssize(captions);
  PaddedText text{at::full({rows, length}, padding.id, at::kLong),
                  at::zeros({rows, length}, at::kBool)};
  auto* ids = text.ids.mutable_data_ptr<int64_t>();
  auto* mask = text.mask.mutable_data_ptr<bool>();
  for (int64_t row = 0; row < rows; ++row) {
    const auto& caption = captions[static_cast<size_t>(row)];
    const int64_t count = std::min(length, std::ssize(caption));
    std::copy_n(caption.begin(), count, ids + row * length);
    std::fill_n(mask + row * length, count, true);
  }
  return text;
}

PaddedText pad_text(const Batch& batch, const TextPadding& padding) {
  std::vector<std::vector<int64_t>> captions;
  const at::Tensor tokens = batch.tokens.defined() ? batch.tokens.cpu().contiguous() : batch.tokens;
  for (size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
    const int64_t* all = tokens.const_data_ptr<int64_t>();
    captions.emplace_back(all + batch.cu_seqlens[i - 1], all + batch.cu_seqlens[i]);
  }
  PaddedText text = pad_text(captions, padding);
  if (!tokens.defined() || batch.tokens.device().is_cpu()) return text;
  return {text.ids.to(batch.tokens.device()), text.mask.to(batch.tokens.device())};
}

TextEncoder declare_text_encoder(Model& model, const Json& config, const std::string& origin,
                                 const std::string& prefix) {
  return declare(model, config, origin, prefix, /*pooler=*/true);
}

EncodedText encode_text(const TextEncoder& encoder, const ParamView& params,
                        const PaddedText& text) {
  check_text(encoder, text);
  EncodedText out;
  at::Tensor x;
  for (const TextStage& stage : encoder.layers) {
    out.penultimate = x;
    x = stage.forward(params, text, x);
  }
  out.hidden = encoder.final_norm.forward(params, text, x);
  out.pooled = encoder.pool.forward(params, text, out.hidden);
  return out;
}

TextSlots add_text_encoder(Model& model, const TextEncoder& encoder, const TextPadding& padding) {
  TextSlots slots;
  Slot x = -1;
  for (const TextStage& stage : encoder.layers) {
    slots.penultimate = x;
    x = add_stage(model, stage, x, padding);
  }
  slots.hidden = add_stage(model, encoder.final_norm, x, padding);
  slots.pooled = add_stage(model, encoder.pool, slots.hidden, padding);
  return slots;
}

LoadedTextEncoder::LoadedTextEncoder(const std::filesystem::path& directory, at::ScalarType dtype)
    : encoder_(declare(model_, read_config(directory), (directory / "config.json").string(), "",
                       has_pooler(ckpt::HfWeights::open(directory)))),
      params_(model_, load_as(model_, directory, dtype),
              std::vector<bool>(model_.params.size(), false)) {}

EncodedText LoadedTextEncoder::encode(const PaddedText& text) const {
  const at::NoGradGuard no_grad;
  return encode_text(encoder_, params_, text);
}

}  // namespace mm::model
