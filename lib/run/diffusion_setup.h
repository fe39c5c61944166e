#pragma once
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/model/diffusion_config.h"
#include "lib/model/objective.h"
#include "lib/run/caption_shape.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// [diffusion] as an objective. Throws UsageError naming what does not go together.
model::Objective objective_of(const DiffusionRecipe& recipe);

/// What stands in place of pixels and caption ids, stored or encoded on the way.
struct StoredInputs {
  int64_t channels = 0, factor = 1;          ///< of latents; 0: pixels
  int64_t text_width = 0, pooled_width = 0;  ///< of embeddings; 0: caption ids
  int64_t text_length = 0;                   ///< rows of every caption, 0: as many as it has
  std::vector<CaptionShare> text_shares;     ///< of each text encoder; empty: not known
};

/// [diffusion] encoder_drop for each of the text encoders; empty: none is left out by itself.
/// Throws UsageError for another number of chances, or where it is not known what an encoder's
/// share is.
std::vector<EncoderDrop> encoder_drops(const DiffusionRecipe& recipe, const StoredInputs& stored);

/// The transformer's configuration: sizes from [model] or from model.from's config.json, classes or
/// the text encoder's vocabulary from the data sets. Throws UsageError naming both sides when a set
/// is not bucketed, when the sets disagree with one another or with the model (a bucket that
/// patches do not divide, labels for a model of captions).
model::DiffusionConfig configure_diffusion(const Recipe& recipe,
                                           const std::vector<data::DatasetManifest>& sets,
                                           const StoredInputs& stored = {});

}  // namespace mm::run
