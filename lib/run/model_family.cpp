#include "lib/run/model_family.h"

#include "lib/base/error.h"
#include "lib/run/diffusion_family.h"
#include "lib/run/llava_family.h"
#include "lib/run/vae_family.h"

namespace mm::run {

void ModelFamily::load_adapters(optim::ParamStore&) const {
  throw UsageError("lora.from: this model family has no adapters");
}

std::vector<image::Image> ModelFamily::draw_row(int64_t, const model::ParamView&) const {
  throw InternalError("this model family draws no pictures");
}

std::unique_ptr<ModelFamily> make_family(const Recipe& recipe,
                                         const std::vector<data::DatasetManifest>& sets) {
  if (recipe.model.diffusion()) return std::make_unique<DiffusionFamily>(recipe, sets);
  if (recipe.model.family == "vae") return std::make_unique<VaeFamily>(recipe, sets);
  return std::make_unique<LlavaFamily>(recipe, sets);
}

}  // namespace mm::run
