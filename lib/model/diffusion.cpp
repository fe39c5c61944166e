#include "lib/model/diffusion.h"

#include "lib/base/error.h"
#include "lib/model/caption_encoder.h"
#include "lib/model/dit.h"
#include "lib/model/mmdit.h"
#include "lib/model/pixart.h"

namespace mm::model {

void add_diffusion(Model& model, const DiffusionConfig& config, const Objective& objective,
                   Slot clean) {
  check_config(config, "model configuration");
  if (objective.variational_bound && !config.learned_sigma) {
    throw UsageError(
        "objective: the variational bound needs a model with a learned variance (twice as many "
        "output channels)");
  }
  DiffusionBuild build{config, std::make_shared<Process>(objective), clean, -1};
  if (config.text.vocab > 0) build.captions = add_caption_encoder(model, config);
  switch (config.family) {
    case DiffusionFamily::kDit:
      return add_dit(model, build);
    case DiffusionFamily::kPixart:
      return add_pixart(model, build);
    case DiffusionFamily::kSd3:
      return add_mmdit(model, build);
  }
  throw InternalError("family {} is unknown", static_cast<int>(config.family));
}

Model build_diffusion(const DiffusionConfig& config, const Objective& objective) {
  Model model;
  add_diffusion(model, config, objective, -1);
  return model;
}

}  // namespace mm::model
