#include "lib/model/llava.h"

#include "lib/model/projector.h"
#include "lib/model/qwen_vl.h"
#include "lib/model/splice.h"
#include "lib/model/tile_features.h"
#include "lib/model/vision_tower.h"

namespace mm::model {

Model build_llava(const LlavaConfig& config) {
  check_config(config, "model configuration");
  if (config.family == Family::kQwen25Vl) return build_qwen_vl(config);
  Model model;
  const Slot tower = add_vision_tower(model, config.vision, "vision_tower.vision_model.",
                                      config.vision_layers_run());
  Slot features = add_projector(model, config, tower);
  if (config.has_tiles()) features = add_tile_arrangement(model, config, features);
  add_spliced_decoder(model, config.text, "language_model.", features);
  return model;
}

}  // namespace mm::model
