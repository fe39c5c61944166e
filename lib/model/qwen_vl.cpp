#include "lib/model/qwen_vl.h"

#include "lib/base/error.h"
#include "lib/model/qwen_vision.h"
#include "lib/model/splice.h"

namespace mm::model {

Model build_qwen_vl(const LlavaConfig& config) {
  MM_CHECK(config.family == Family::kQwen25Vl, "a model of family {}", family_name(config.family));
  Model model;
  const Slot features = add_qwen_vision(model, config.vision, "visual.");
  add_spliced_decoder(model, config.text, "", features);
  return model;
}

}  // namespace mm::model
