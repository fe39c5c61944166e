#pragma once
#include <string>

#include "lib/base/json.h"

namespace mm::ckpt {

/// Throws DataError, naming `origin`, for a config.json of LLaVA's own code: the language model's
/// keys at the top, and "mm_vision_tower" with the name of a tower whose sizes are elsewhere. Any
/// other configuration passes.
void refuse_flat_llava(const Json& config, const std::string& origin);

}  // namespace mm::ckpt
