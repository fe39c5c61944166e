#include "lib/run/diffusion_setup.h"

#include <map>

#include "lib/base/error.h"

namespace mm::run {
namespace {

/// The tokenizer of sets whose captions are class numbers.
constexpr const char* kLabels = "labels";

model::DiffusionFamily family_of(const std::string& word) {
  if (word == "dit") return model::DiffusionFamily::kDit;
  if (word == "pixart") return model::DiffusionFamily::kPixart;
  MM_CHECK(word == "sd3", "{} is no diffusion family", word);
  return model::DiffusionFamily::kSd3;
}

model::DiffusionConfig from_sizes(const Recipe& recipe, const StoredInputs& stored) {
  const ModelRecipe::Transformer& t = recipe.model.transformer;
  model::DiffusionConfig config;
  config.family = family_of(recipe.model.family);
  config.heads = t.heads;
  config.head_size = t.hidden / t.heads;
  config.layers = t.layers;
  config.in_channels = stored.channels > 0 ? stored.channels : 3;
  config.learned_sigma = recipe.diffusion.learned_sigma;
  config.sample_size = t.grid_side * t.patch;
  config.patch = t.patch;
  config.time_divisor = t.time_divisor;
  config.qk_norm = t.qk_norm;
  config.position_scale = t.position_scale;
  config.size_embedders = t.size_embedders;
  config.dual_layers = t.dual_layers;
  if (stored.text_width > 0) {
    config.caption_width = stored.text_width;
    config.pooled_width = stored.pooled_width;
    config.caption_tokens =
        stored.text_length > 0 ? stored.text_length : recipe.model.text_encoder.max_tokens;
    // Filled captions are read whole, as SD3 reads them.
    config.mask_captions = config.family != model::DiffusionFamily::kSd3 || stored.text_length == 0;
  }
  return config;
}

/// The text encoder of ours that a model of captions gets from scratch.
void add_text_encoder(const ModelRecipe::TextEncoder& recipe, int64_t vocab,
                      model::DiffusionConfig& config) {
  config.text = {
      .vocab = vocab, .hidden = recipe.hidden, .layers = recipe.layers, .heads = recipe.heads};
  config.caption_width = recipe.hidden;
  config.caption_tokens = recipe.max_tokens;
}

void check_sets(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets) {
  for (size_t i = 0; i < sets.size(); ++i) {
    const std::string data = recipe.stages[i].data.string();
    if (sets[i].pictures.buckets.empty())
      throw UsageError(
          "{}: not a bucketed set, and {} draws pictures by buckets; pack it with mmshard pack "
          "--buckets",
          data, recipe.model.family);
    if (sets[i].tokenizer.file.xxh3_128 != sets[0].tokenizer.file.xxh3_128 ||
        sets[i].tokenizer.vocab_size != sets[0].tokenizer.vocab_size)
      throw UsageError("{} and {}: packed with different tokenizers or classes; pack both with one",
                       recipe.stages[0].data.string(), data);
  }
}

void check_buckets(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets,
                   int64_t patch) {
  for (size_t i = 0; i < sets.size(); ++i) {
    for (const data::BucketShape& bucket : sets[i].pictures.buckets) {
      if (bucket.height % patch == 0 && bucket.width % patch == 0) continue;
      throw UsageError(
          "{}: has pictures of {}x{} pixels, which patches of {} pixels do not divide; pack with "
          "other buckets, or set model.transformer.patch",
          recipe.stages[i].data.string(), bucket.width, bucket.height, patch);
    }
  }
}

/// Stored embeddings instead of caption ids.
void check_stored_text(const Recipe& recipe, const StoredInputs& stored,
                       const model::DiffusionConfig& config) {
  const bool pooled = config.family == model::DiffusionFamily::kSd3;
  if (config.caption_width == stored.text_width &&
      (!pooled || config.pooled_width == stored.pooled_width))
    return;
  throw UsageError(
      "model.from: {} takes text embeddings of width {} (pooled {}), {} gives {} (pooled {}); "
      "encode "
      "with the model's own text encoders",
      recipe.model.from.string(), config.caption_width, config.pooled_width,
      recipe.model.text_models.empty() ? recipe.stages[0].encoded.string() : "model.text_model",
      stored.text_width, stored.pooled_width);
}

/// Classes or captions, as the family takes them.
void settle_conditions(const Recipe& recipe, const data::DatasetManifest& set,
                       const StoredInputs& stored, model::DiffusionConfig& config) {
  const bool labels = set.tokenizer.kind == kLabels;
  const std::string data = recipe.stages[0].data.string();
  if (config.family == model::DiffusionFamily::kDit) {
    if (!labels)
      throw UsageError("model.family: dit draws by class, {} has captions; take pixart", data);
    if (!recipe.model.text_models.empty())
      throw UsageError("model.text_model: dit draws by class and reads no captions; leave it out");
    if (recipe.model.from.empty()) config.classes = set.tokenizer.vocab_size;
    if (set.tokenizer.vocab_size > config.classes)
      throw UsageError("model.from: {} knows {} classes, the data set {} has {}",
                       recipe.model.from.string(), config.classes, data, set.tokenizer.vocab_size);
    return;
  }
  if (labels)
    throw UsageError("model.family: {} draws by caption, {} has classes; take dit",
                     recipe.model.family, data);
  if (stored.text_width > 0) return check_stored_text(recipe, stored, config);
  if (config.family == model::DiffusionFamily::kSd3)
    throw UsageError(
        "model.family: sd3 reads embeddings, and {} has caption ids; give model.text_model and its "
        "like, or stage.encoded (mmshard encode), or train pixart",
        data);
  if (recipe.model.from.empty())
    add_text_encoder(recipe.model.text_encoder, set.tokenizer.vocab_size, config);
  if (config.text.vocab == 0)
    throw UsageError(
        "model.from: {} reads embeddings, and {} has caption ids; give model.text_model or "
        "stage.encoded",
        recipe.model.from.string(), data);
  if (set.tokenizer.vocab_size > config.text.vocab)
    throw UsageError("model.from: {} has {} text rows, the data set {} has {} ids",
                     recipe.model.from.string(), config.text.vocab, data, set.tokenizer.vocab_size);
}

}  // namespace

model::Objective objective_of(const DiffusionRecipe& recipe) {
  static const std::map<std::string, model::Prediction> kPredictions{
      {"epsilon", model::Prediction::kNoise},
      {"v", model::Prediction::kV},
      {"flow", model::Prediction::kVelocity}};
  static const std::map<std::string, model::FlowDensity> kDensities{
      {"uniform", model::FlowDensity::kUniform},
      {"logit_normal", model::FlowDensity::kLogitNormal},
      {"mode", model::FlowDensity::kMode},
      {"cosmap", model::FlowDensity::kCosmap}};
  static const std::map<std::string, model::FlowWeight> kWeights{
      {"none", model::FlowWeight::kNone},
      {"sigma_sqrt", model::FlowWeight::kSigmaSquare},
      {"cosmap", model::FlowWeight::kCosmap}};
  model::Objective objective;
  objective.prediction = kPredictions.at(recipe.predict);
  objective.curve = model::beta_curve(recipe.noise_schedule).value();
  objective.steps = recipe.time_steps;
  objective.variational_bound = recipe.learned_sigma;
  objective.min_snr_gamma = recipe.min_snr_gamma;
  objective.density = kDensities.at(recipe.time_draw);
  objective.shift = recipe.shift;
  objective.shift_patches = recipe.shift_patches;
  objective.density_mean = recipe.time_mean;
  objective.density_deviation = recipe.time_deviation;
  objective.mode_scale = recipe.time_mode_scale;
  objective.from_table = recipe.time_table;
  objective.weight = kWeights.at(recipe.loss_weight);
  objective.per_element = recipe.normalisation == "element";
  objective.check();
  return objective;
}

std::vector<EncoderDrop> encoder_drops(const DiffusionRecipe& recipe, const StoredInputs& stored) {
  const std::vector<double>& given = recipe.encoder_drop;
  if (given.empty()) return {};
  if (stored.text_width == 0)
    throw UsageError(
        "diffusion.encoder_drop: of text models in front of a diffusion model, and there is none; "
        "label_drop leaves out captions");
  const size_t encoders = stored.text_shares.size();
  if (encoders == 0)
    throw UsageError(
        "diffusion.encoder_drop: the stored embeddings do not say which numbers are of which text "
        "encoder; give model.text_model and its like, or encode again (mmshard encode)");
  if (given.size() != 1 && given.size() != encoders)
    throw UsageError(
        "diffusion.encoder_drop: {} chances for {} text encoders; give one, or one each",
        given.size(), encoders);
  std::vector<EncoderDrop> drops;
  for (size_t i = 0; i < encoders; ++i)
    drops.push_back({stored.text_shares[i], given[given.size() == 1 ? 0 : i]});
  return drops;
}

model::DiffusionConfig configure_diffusion(const Recipe& recipe,
                                           const std::vector<data::DatasetManifest>& sets,
                                           const StoredInputs& stored) {
  MM_CHECK(!sets.empty(), "a recipe has at least one stage");
  check_sets(recipe, sets);
  model::DiffusionConfig config =
      recipe.model.from.empty() ? from_sizes(recipe, stored)
                                : model::read_diffusion_config(recipe.model.from / "config.json");
  if (config.family != family_of(recipe.model.family))
    throw UsageError("model.family is {}, {} holds a model of family {}", recipe.model.family,
                     recipe.model.from.string(), model::diffusion_family_name(config.family));
  const int64_t channels = stored.channels > 0 ? stored.channels : 3;
  if (config.in_channels != channels)
    throw UsageError(
        "model.from: {} draws pictures of {} channels, the stages have {} of {}; give model.vae, "
        "or "
        "stage.encoded (mmshard encode), of a VAE with as many channels",
        recipe.model.from.string(), config.in_channels, stored.channels > 0 ? "latents" : "pixels",
        channels);
  if (config.learned_sigma != recipe.diffusion.learned_sigma)
    throw UsageError("diffusion.learned_sigma is {}, the model of {} has {}learned variance",
                     recipe.diffusion.learned_sigma, recipe.model.from.string(),
                     config.learned_sigma ? "a " : "no ");
  settle_conditions(recipe, sets.front(), stored, config);
  // Published configurations do not say it, and without a mask further rows would be read as text.
  if (config.family == model::DiffusionFamily::kSd3 && stored.text_length > 0)
    config.caption_tokens = stored.text_length;
  check_buckets(recipe, sets, config.patch * stored.factor);
  model::check_config(config, recipe.path.string());
  return config;
}

}  // namespace mm::run
