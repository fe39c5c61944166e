#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm::ckpt {

/// The published llava-hf name of a tensor in any of the three spellings: as on disk
/// ("vision_tower.vision_model...", "language_model.model..."), as in memory and as transformers 5
/// writes it ("model.vision_tower...", "model.language_model.layers...", the tower with or without
/// "vision_model."), and the original repository's
/// ("model.vision_tower.vision_tower.vision_model...", "model.mm_projector.0", "model.layers...").
/// Nothing for tensors to drop (rotary `inv_freq`, `position_ids`). A name that fits no spelling
/// comes back as it is.
std::optional<std::string> published_llava_name(std::string_view name);

}  // namespace mm::ckpt
