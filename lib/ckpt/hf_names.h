#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm::ckpt {

/// The published llava-hf name of a tensor in any of the three spellings: as on disk
/// ("vision_tower.vision_model...", "language_model.model..."), as in memory and as transformers 5
/// writes it ("model.vision_tower...", "model.language_model.layers...", the tower with or without
/// "vision_model."), and the original repository's
/// ("model.vision_tower.vision_tower.vision_model...", "model.mm_projector.0", of one layer
/// "model.mm_projector.weight", "model.layers...").
/// Nothing for tensors to drop (rotary `inv_freq`, `position_ids`). A name that fits no spelling
/// comes back as it is. LLaVA-NeXT's "image_newline" loses its "model.".
std::optional<std::string> published_llava_name(std::string_view name);

/// The published Qwen2.5-VL name ("visual...", "model.layers...", "lm_head...") of a tensor in that
/// spelling or the one in memory ("model.visual...", "model.language_model..."). Nothing for
/// tensors to drop, as above.
std::optional<std::string> published_qwen_vl_name(std::string_view name);

/// By config.json's model_type: "llava..." and "qwen2_5_vl" as above, names of other models as they
/// are.
std::optional<std::string> published_name(std::string_view model_type, std::string_view name);

/// The way back: what transformers 5 calls the tensor of a published LLaVA or Qwen2.5-VL name
/// inside its model: "model.vision_tower.encoder...", "model.visual...",
/// "model.multi_modal_projector...", "model.language_model.layers...", "lm_head.weight".
std::string transformers_name(std::string_view published);

}  // namespace mm::ckpt
