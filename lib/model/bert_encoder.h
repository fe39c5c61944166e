#pragma once
#include "lib/model/config_section.h"
#include "lib/model/text_encoder.h"

namespace mm::model {

/// BERT, as MiniLM and other sentence encoders have it: learned positions, one token type, norms
/// behind each half, exact GELU. The pooled vector is the mean over a caption's tokens, as sentence
/// encoders take it, not normalised. The parameters of BERT's own pooler are kept with the model
/// where `has_pooler`, and not used.
TextEncoder declare_bert_encoder(Model& model, const Section& config, const std::string& prefix,
                                 bool has_pooler = true);

}  // namespace mm::model
