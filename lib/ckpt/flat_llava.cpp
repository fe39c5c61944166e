#include "lib/ckpt/flat_llava.h"

#include "lib/base/error.h"

namespace mm::ckpt {

void refuse_flat_llava(const Json& config, const std::string& origin) {
  const bool flat = config.is_object() && config.contains("mm_vision_tower") &&
                    !config.contains("vision_config") && !config.contains("text_config");
  if (!flat) return;
  throw DataError(
      "{}: the flat configuration of LLaVA's own code (mm_vision_tower {}), which does not hold "
      "the "
      "tower's sizes; expected vision_config and text_config: take the llava-hf release of the "
      "model, or make one with transformers' convert_llava_weights_to_hf",
      origin, config.at("mm_vision_tower").dump());
}

}  // namespace mm::ckpt
