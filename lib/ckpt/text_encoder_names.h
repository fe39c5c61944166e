#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm::ckpt {

/// T5's embedding table, and the copy of it that some files hold.
inline constexpr const char *kT5Table = "shared.weight",
                            *kT5TableCopy = "encoder.embed_tokens.weight";

/// The published name of a text encoder's tensor, by config.json's model_type. "clip_text_model":
/// "text_model..." also where transformers 5 leaves that out. "bert": without "bert.", norms'
/// "gamma" and "beta" as "weight" and "bias". Nothing for what is computed (`position_ids`), for
/// heads of other tasks ("cls...") and for T5's decoder. Other models' names as they are.
std::optional<std::string> published_text_encoder_name(std::string_view model_type,
                                                       std::string_view name);

}  // namespace mm::ckpt
