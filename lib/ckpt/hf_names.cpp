#include "lib/ckpt/hf_names.h"

#include <array>
#include <utility>

namespace mm::ckpt {
namespace {

bool take_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

std::string tower_name(std::string_view rest) {
  take_prefix(rest, "vision_tower.");  // the original repository nests the tower twice
  take_prefix(rest, "vision_model.");
  return "vision_tower.vision_model." + std::string(rest);
}

std::string projector_name(std::string_view rest) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLayers = {
      {{"0.", "linear_1."}, {"2.", "linear_2."}}};
  for (const auto& [original, published] : kLayers) {
    if (take_prefix(rest, original))
      return "multi_modal_projector." + std::string(published) + std::string(rest);
  }
  // The original repository's projector of one layer is that layer itself.
  if (rest == "weight" || rest == "bias")
    return "multi_modal_projector.linear." + std::string(rest);
  return "multi_modal_projector." + std::string(rest);
}

std::string language_name(std::string_view rest) {
  if (rest.starts_with("lm_head.")) return "language_model." + std::string(rest);
  take_prefix(rest, "model.");
  return "language_model.model." + std::string(rest);
}

bool is_decoder_name(std::string_view name) {
  return name.starts_with("layers.") || name.starts_with("embed_tokens.") ||
         name.starts_with("norm.");
}

bool is_computed(std::string_view name) {
  return name.ends_with(".inv_freq") || name.ends_with(".position_ids");
}

}  // namespace

std::optional<std::string> published_llava_name(std::string_view name) {
  if (is_computed(name)) return std::nullopt;
  std::string_view rest = name;
  const bool in_model = take_prefix(rest, "model.");
  if (take_prefix(rest, "vision_tower.")) return tower_name(rest);
  if (take_prefix(rest, "multi_modal_projector.") || take_prefix(rest, "mm_projector."))
    return projector_name(rest);
  if (take_prefix(rest, "language_model.")) return language_name(rest);
  if (in_model && is_decoder_name(rest)) return language_name(rest);
  if (rest == "image_newline") return std::string(rest);
  if (name.starts_with("lm_head.")) return language_name(name);
  return std::string(name);
}

std::optional<std::string> published_qwen_vl_name(std::string_view name) {
  if (is_computed(name)) return std::nullopt;
  std::string_view rest = name;
  if (take_prefix(rest, "model.visual.")) return "visual." + std::string(rest);
  if (take_prefix(rest, "model.language_model.")) return "model." + std::string(rest);
  return std::string(name);
}

std::optional<std::string> published_name(std::string_view model_type, std::string_view name) {
  if (model_type.starts_with("llava")) return published_llava_name(name);
  if (model_type == "qwen2_5_vl") return published_qwen_vl_name(name);
  return std::string(name);
}

std::string transformers_name(std::string_view published) {
  std::string_view rest = published;
  if (take_prefix(rest, "vision_tower.")) {
    take_prefix(rest, "vision_model.");
    return "model.vision_tower." + std::string(rest);
  }
  for (const std::string_view same : {"multi_modal_projector.", "image_newline", "visual."})
    if (rest.starts_with(same)) return "model." + std::string(rest);
  take_prefix(rest, "language_model.");
  if (take_prefix(rest, "model.")) return "model.language_model." + std::string(rest);
  return std::string(rest);
}

}  // namespace mm::ckpt
