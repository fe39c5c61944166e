#include "lib/ckpt/text_encoder_names.h"

namespace mm::ckpt {
namespace {

std::optional<std::string> clip_name(std::string_view name) {
  if (name.starts_with("text_model.") || name.starts_with("text_projection."))
    return std::string(name);
  for (const std::string_view part : {"embeddings.", "encoder.", "final_layer_norm."})
    if (name.starts_with(part)) return "text_model." + std::string(name);
  return std::string(name);
}

std::optional<std::string> bert_name(std::string_view name) {
  if (name.starts_with("bert.")) name.remove_prefix(5);
  if (name.starts_with("cls.")) return std::nullopt;
  constexpr std::string_view kGamma = ".gamma", kBeta = ".beta";
  if (name.ends_with(kGamma))
    return std::string(name.substr(0, name.size() - kGamma.size())) + ".weight";
  if (name.ends_with(kBeta))
    return std::string(name.substr(0, name.size() - kBeta.size())) + ".bias";
  return std::string(name);
}

std::optional<std::string> t5_name(std::string_view name) {
  if (name.starts_with("decoder.") || name == "lm_head.weight") return std::nullopt;
  return std::string(name);
}

}  // namespace

std::optional<std::string> published_text_encoder_name(std::string_view model_type,
                                                       std::string_view name) {
  if (model_type == "t5") return t5_name(name);
  if (model_type != "clip_text_model" && model_type != "bert") return std::string(name);
  if (name.ends_with("position_ids")) return std::nullopt;
  return model_type == "bert" ? bert_name(name) : clip_name(name);
}

}  // namespace mm::ckpt
