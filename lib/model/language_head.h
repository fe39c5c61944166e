#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// Appends the final norm and the head with its loss as one block on `x` [T, C]. The loss is the
/// sum of the cross entropies at the target positions, each times its Batch::target_weights; the
/// plain sum of each sample is written beside it. Only their rows are normalised and
/// multiplied, in chunks (kLogitElements). Logits [T, vocab] are written when Batch::want_logits,
/// without a gradient; with a KV cache, for the rows it asks for; else [0, vocab]. A tied head
/// reads `table` [vocab, C]; its gradient adds to the embedding's. Sets Model::loss_slot,
/// sample_losses_slot and logits_slot.
void add_language_head(Model& model, const TextConfig& config, const std::string& prefix, Slot x,
                       ParamId table);

/// Logits that exist at one time in the loss: 16 Mi elements, 64 MiB in fp32.
inline constexpr int64_t kLogitElements = int64_t{1} << 24;

}  // namespace mm::model
