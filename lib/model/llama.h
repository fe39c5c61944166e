#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

// A Llama-type decoder as blocks: T tokens, C hidden size. `prefix` ends in a dot
// ("language_model.").

/// Declares the embedding table, `prefix`model.embed_tokens.weight [vocab, C].
ParamId declare_embedding_table(Model& model, const TextConfig& config, const std::string& prefix);

/// The pieces of decoder layer `number` on slot `in` [T, C], writing `out`: norm | attention |
/// residual + norm | SwiGLU | residual, with the boundaries of the tensor axis between them. join()
/// makes one segment of them. Declares the layer's parameters.
std::vector<Step> decoder_layer_pieces(Model& model, const TextConfig& config,
                                       const std::string& prefix, int64_t number, Slot in,
                                       Slot out);

/// Appends the decoder layers, one block each of two segments (attention, MLP), and the head's
/// block. `x` is the slot of the embedded tokens; `table` the embedding table, which a tied head
/// reads. Adds the slots "hidden.1" ..., and what add_language_head adds.
void add_llama(Model& model, const TextConfig& config, const std::string& prefix, Slot x,
               ParamId table);

}  // namespace mm::model
