#pragma once
#include <string>

#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// Appends the decoder of a vision-language model: token embedding with the rows of slot `features`
/// in the places of Batch::image_token_index, decoder layers, head with the loss. Adds the slots
/// "hidden.0" ... "hidden.L", "loss" and "logits". `prefix` is empty or ends in a dot.
void add_spliced_decoder(Model& model, const TextConfig& config, const std::string& prefix,
                         Slot features);

}  // namespace mm::model
