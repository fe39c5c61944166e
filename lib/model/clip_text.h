#pragma once
#include <string>

#include "lib/model/config_section.h"
#include "lib/model/text_encoder.h"

namespace mm::model {

/// CLIP's text model, with "text_projection" where config.json's architectures say
/// CLIPTextModelWithProjection. Causal; positions are learned. The pooled vector is the normed
/// hidden state at the first end-of-text token; with `eos_token_id` 2, which older files have
/// whatever their tokenizer says, at the largest id; projected where there is a projection.
TextEncoder declare_clip_text(Model& model, const Section& config, const std::string& prefix);

}  // namespace mm::model
