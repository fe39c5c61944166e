#include "lib/run/trained_diffusion.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>

#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/run_dir.h"
#include "lib/model/diffusion.h"
#include "lib/model/initial_draw.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/encoded_manifest.h"
#include "lib/run/run_snapshot.h"
#include "lib/state/load_state.h"

namespace fs = std::filesystem;

namespace mm::run {

model::SimpleParams TrainedDiffusion::untrained() const {
  std::vector<at::Tensor> values;
  for (const model::ParamSpec& spec : model->params)
    values.push_back(model::InitialDraw(spec, seed).whole());
  return {*model, std::move(values), std::vector<bool>(model->params.size(), false)};
}

data::BucketShape TrainedDiffusion::usual_size() const {
  const auto& buckets = data.pictures.buckets;
  MM_CHECK(!buckets.empty(), "a diffusion run has buckets");
  // Less: nearer to a square, a / b < c / d as a d < c b; then larger.
  return *std::ranges::min_element(buckets, [](data::BucketShape x, data::BucketShape y) {
    const auto [x_short, x_long] = std::minmax({int64_t{x.height}, int64_t{x.width}});
    const auto [y_short, y_long] = std::minmax({int64_t{y.height}, int64_t{y.width}});
    const int64_t of_x = x_long * y_short, of_y = y_long * x_short;
    return of_x != of_y ? of_x < of_y : x.pixels() > y.pixels();
  });
}

std::string guidance_remark(const Recipe& recipe, double scale) {
  const DiffusionRecipe& d = recipe.diffusion;
  const bool all_shares = !d.encoder_drop.empty() && std::ranges::min(d.encoder_drop) > 0;
  if (scale == 1 || d.label_drop > 0 || all_shares) return "";
  if (!recipe.model.from.empty() || !recipe.init_from.empty()) return "";
  return fmt::format(
      "guidance {}: no picture was trained without its label or caption (diffusion.label_drop is "
      "0), so what is guided away from is chance; take guidance 1, or train with label_drop",
      scale);
}

namespace {

void check_hash(const char* option, const std::string& made_by, const std::string& given) {
  if (made_by.empty() || made_by == given) return;
  throw DataError(
      "{}: the run was trained on the output of {}, this is {}; give the models it was "
      "trained with",
      option, made_by, given);
}

void check_text(const TrainedDiffusion& trained, const CaptionShape& shape) {
  const bool pooled = trained.config.family == model::DiffusionFamily::kSd3;
  if (shape.width == trained.config.caption_width &&
      (!pooled || shape.pooled_width == trained.config.pooled_width))
    return;
  throw DataError("--text-encoder: embeddings of width {} (pooled {}), {} takes {} (pooled {})",
                  shape.width, shape.pooled_width, trained.run.string(),
                  trained.config.caption_width, trained.config.pooled_width);
}

/// Given, and of no use.
void refuse_useless(const TrainedDiffusion& trained, const EncoderPaths& given,
                    EncoderNeeds needs) {
  const auto refuse = [&](const char* option, const char* reads, bool stored) {
    if (stored)
      throw UsageError("{}: --encoded has what it would make; leave one of them out", option);
    throw UsageError("{}: {} {}; leave it out", option, trained.run.string(), reads);
  };
  if (!given.vae.empty() && !(trained.draws_latents() && needs.vae))
    refuse("--vae", "draws pixels", trained.draws_latents());
  if (!given.text.empty() && !(trained.reads_embeddings() && needs.text))
    refuse("--text-encoder",
           trained.config.takes_captions() ? "has a text encoder of its own" : "draws by class",
           trained.reads_embeddings());
}

void check_encoders(const TrainedDiffusion& trained, const EncoderPaths& paths) {
  const Encoders& encoders = *trained.encoders;
  if (encoders.vae && encoders.vae->config().latent_channels != trained.config.in_channels)
    throw DataError("--vae: latents of {} channels, {} draws {}",
                    encoders.vae->config().latent_channels, trained.run.string(),
                    trained.config.in_channels);
  if (!encoders.text) return;
  check_text(trained, encoders.text->shape());
  const std::string difference =
      writing_difference(trained.made_by.writing, encoders.text->writing());
  if (!difference.empty())
    throw DataError("--text-encoder {}: {}; give the tokenizers the run was trained with",
                    paths.text.front().string(), difference);
}

}  // namespace

void use_encoders(TrainedDiffusion& trained, const EncoderPaths& given, EncoderNeeds needs) {
  refuse_useless(trained, given, needs);
  needs.vae = needs.vae && trained.draws_latents();
  needs.text = needs.text && trained.reads_embeddings();
  EncoderPaths paths = encoder_paths(trained.recipe.model);
  if (!given.vae.empty()) paths.vae = given.vae;
  if (!given.text.empty()) paths.text = given.text, paths.text_padding = given.text_padding;
  if (!needs.vae) paths.vae.clear();
  if (!needs.text) paths.text.clear();
  if (needs.vae && paths.vae.empty())
    throw UsageError("{}: draws latents; give the VAE they are of (--vae DIR)",
                     trained.run.string());
  if (needs.text && paths.text.empty())
    throw UsageError("{}: reads embeddings; give the text encoder they are of (--text-encoder DIR)",
                     trained.run.string());
  if (paths.empty()) return;
  if (!paths.vae.empty()) check_hash("--vae", trained.made_by.vae, model_hash(paths.vae));
  std::vector<std::string> hashes;
  for (const fs::path& text : paths.text) hashes.push_back(model_hash(text));
  if (!hashes.empty())
    check_hash("--text-encoder", trained.made_by.text,
               text_models_hash(hashes, paths.text_padding));
  trained.encoders = load_encoders(paths, trained.run / trained.data.tokenizer.file.file);
  check_encoders(trained, paths);
}

TrainedDiffusion model_in_training(const Recipe& recipe, const data::DatasetManifest& set,
                                   const model::DiffusionConfig& config) {
  TrainedDiffusion one;
  one.recipe = recipe;
  one.seed = recipe.seed;
  one.averaged = recipe.ema.on();
  one.config = config;
  one.objective = objective_of(recipe.diffusion);
  one.model = std::make_unique<model::Model>(model::build_diffusion(config, one.objective));
  one.norm = pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std);
  one.data = set;
  if (config.takes_captions())
    one.tokenizer = text::load_tokenizer(recipe.stages.back().data / set.tokenizer.file.file);
  return one;
}

model::SimpleParams in_float(const model::Model& model, const model::ParamView& params) {
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < model.params.size(); ++i)
    values.push_back(params.get(static_cast<model::ParamId>(i)).detach().to(at::kFloat));
  return {model, std::move(values), std::vector<bool>(model.params.size(), false)};
}

bool is_diffusion_run(const fs::path& run) {
  return fs::exists(run / "recipe.toml") &&
         read_recipe(run / "recipe.toml", {}, RecipePaths::kOfRun).model.diffusion();
}

TrainedDiffusion open_trained_diffusion(const fs::path& run, Weights weights) {
  const RunDir directory = RunDir::open(run);
  TrainedDiffusion trained{.run = run};
  trained.recipe = read_recipe(directory.recipe(), {}, RecipePaths::kOfRun);
  if (!trained.recipe.model.diffusion())
    throw UsageError("{}: a run of family {}, which draws no pictures; expected dit, pixart or sd3",
                     run.string(), trained.recipe.model.family);
  const state::Checkpoint checkpoint = state::open_checkpoint(run);
  const std::string origin = checkpoint.directory.string();
  const RunSnapshot snapshot = RunSnapshot::from_json(checkpoint.manifest.state, origin);
  trained.step = snapshot.global_step;
  trained.seed = snapshot.seed;
  trained.config = model::diffusion_config_from_json(snapshot.config, origin);
  trained.objective = objective_of(trained.recipe.diffusion);
  trained.model =
      std::make_unique<model::Model>(model::build_diffusion(trained.config, trained.objective));
  TrainedWeights read = read_trained_weights(checkpoint, *trained.model, weights);
  trained.averaged = read.averaged;
  trained.params =
      std::make_unique<model::SimpleParams>(*trained.model, std::move(read.values),
                                            std::vector<bool>(trained.model->params.size(), false));
  trained.data =
      data::manifest_from_json(read_json_file(run / "data.json"), (run / "data.json").string());
  trained.norm =
      pixel_norm(trained.recipe.model.normalise.mean, trained.recipe.model.normalise.std);
  trained.made_by = read_encoder_record(run);
  if (trained.config.takes_captions())
    trained.tokenizer = text::load_tokenizer(run / trained.data.tokenizer.file.file);
  return trained;
}

Condition label_condition(const TrainedDiffusion& trained, const std::string& word) {
  if (trained.config.takes_captions())
    throw UsageError("--label: {} draws by caption; give --prompt", trained.run.string());
  const std::vector<std::string>& names = trained.data.tokenizer.classes;
  if (const auto found = std::ranges::find(names, word); found != names.end())
    return {.label = found - names.begin()};
  int64_t number = -1;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error == std::errc() && stop == end && number >= 0 && number < trained.config.classes)
    return {.label = number};
  throw UsageError("--label {}: no name of a class, and no number of 0 to {}{}", word,
                   trained.config.classes - 1, suggestion(word, names));
}

Condition caption_condition(const TrainedDiffusion& trained, const std::string& prompt) {
  if (!trained.tokenizer)
    throw UsageError("{}: draws by class; give --label, 0 to {}", trained.run.string(),
                     trained.config.classes - 1);
  const auto most = static_cast<size_t>(trained.data.max_length);
  return {.caption = trained.tokenizer->encode_whole(prompt, most)};
}

}  // namespace mm::run
