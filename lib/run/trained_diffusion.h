#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/image/image.h"
#include "lib/model/diffusion_config.h"
#include "lib/model/eager.h"
#include "lib/model/objective.h"
#include "lib/model/sampler.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/frozen_encoders.h"
#include "lib/run/recipe.h"
#include "lib/run/trained_weights.h"
#include "lib/text/tokenizer.h"

namespace mm::run {

/// A diffusion run's newest whole checkpoint as a model to draw with, in fp32; or the model of a
/// run in training, which has no weights of its own (model_in_training).
struct TrainedDiffusion {
  std::filesystem::path run;
  int64_t step = 0;
  uint64_t seed = 0;
  bool averaged = false;  ///< params are the moving average
  Recipe recipe;
  model::DiffusionConfig config;
  model::Objective objective;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::SimpleParams> params;
  std::unique_ptr<text::Tokenizer> tokenizer;  ///< null for a model of classes
  PixelNorm norm;
  data::DatasetManifest data;  ///< of the pictures it was trained on
  EncoderRecord made_by;       ///< what its latents and embeddings were of
  /// What draws go through, once use_encoders has been called; null: pixels, and classes or ids.
  std::shared_ptr<const Encoders> encoders;

  bool draws_latents() const { return !made_by.vae.empty() || config.in_channels != 3; }
  bool reads_embeddings() const { return config.takes_captions() && config.text.vocab == 0; }
  /// Pixels along a side of one latent; 1 without.
  int64_t factor() const {
    return encoders && encoders->vae ? encoders->vae->config().factor() : 1;
  }
  /// The same model with its initial weights, as training found them.
  model::SimpleParams untrained() const;
  /// The bucket of its pictures that is nearest to a square by the ratio of its sides; of equals
  /// the largest.
  data::BucketShape usual_size() const;
};

/// `weights`: the moving average where the run has one. Throws DataError if the run has no whole
/// checkpoint, UsageError if it is no run of a diffusion model.
TrainedDiffusion open_trained_diffusion(const std::filesystem::path& run,
                                        Weights weights = Weights::kAveraged);

/// The model of a run in training on `set`, without weights, run directory and encoders.
TrainedDiffusion model_in_training(const Recipe& recipe, const data::DatasetManifest& set,
                                   const model::DiffusionConfig& config);
/// Weights in training as an open run has them, in fp32; those that are so already are shared.
model::SimpleParams in_float(const model::Model& model, const model::ParamView& params);

/// Which of a run's frozen models are needed: what is stored needs none.
struct EncoderNeeds {
  bool vae = true, text = true;
};
/// Loads the frozen models that a run of latents or embeddings is drawn with, as far as they are
/// needed: of `given`, else of its recipe. Throws UsageError naming the option where one is missing
/// or given though nothing is asked of it; DataError for other models than the run's latents and
/// embeddings were of, whose sizes are others, or that write captions otherwise.
void use_encoders(TrainedDiffusion& trained, const EncoderPaths& given = {},
                  EncoderNeeds needs = {});

/// Whether RUN/recipe.toml names a diffusion family.
bool is_diffusion_run(const std::filesystem::path& run);

/// What a picture is to show: ids of a caption, or a class; neither: no condition.
struct Condition {
  std::vector<int32_t> caption;
  int64_t label = -1;
};
/// A class by its name, or else by its number. Throws UsageError with the nearest name.
Condition label_condition(const TrainedDiffusion& trained, const std::string& word);
/// The caption as its data set would have stored it.
Condition caption_condition(const TrainedDiffusion& trained, const std::string& prompt);

/// How pictures are drawn.
struct DrawOptions {
  model::SamplerOptions sampler;
  model::Guidance guidance;
  data::BucketShape size;
  uint64_t seed = 0;
  uint64_t first = 0;  ///< number of the first picture
  int64_t batch = 32;  ///< pictures drawn at once
};
/// Sampler, steps and shift by the run's objective, size as usual_size().
DrawOptions usual_drawing(const TrainedDiffusion& trained);
/// "ddim", "dpm" or "euler" (other words: as it is) with its usual steps, or `steps` above 0.
void set_sampler(DrawOptions& options, const std::string& word, int64_t steps);

/// Throws UsageError, naming `key`, for pictures that a model's patches do not divide or its table
/// of positions does not reach. `factor`: pixels along a side of one latent.
void check_picture_size(const model::DiffusionConfig& config, int64_t factor,
                        data::BucketShape size, const std::string& key);
/// What guidance by `scale` draws of a model that was never trained without a condition; one line,
/// empty where there is nothing to say. Weights from elsewhere (model.from, init.from) may have
/// been.
std::string guidance_remark(const Recipe& recipe, double scale);

/// One picture a condition, of options.size. Picture i begins with noise of (seed, first + i): it
/// depends on no other. Throws UsageError for a size that patches do not divide, a class there is
/// not, or a run of latents or embeddings without its encoders.
std::vector<image::Image> draw_pictures(const TrainedDiffusion& trained,
                                        const model::ParamView& params,
                                        const std::vector<Condition>& conditions,
                                        const DrawOptions& options);

/// Pictures of one size side by side, `columns` a row, on white with a border of `gap` pixels.
image::Image picture_grid(const std::vector<image::Image>& pictures, int64_t columns,
                          int64_t gap = 2);

}  // namespace mm::run
