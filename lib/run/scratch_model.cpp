#include "lib/run/scratch_model.h"

#include "lib/base/error.h"
#include "lib/data/pack_options.h"
#include "lib/text/tokenizer.h"

namespace mm::run {
namespace {

model::TextConfig text_of(const Recipe& recipe, const data::TokenizerEntry& tokenizer) {
  const ModelRecipe::Language& l = recipe.model.language;
  model::TextConfig text{.vocab = tokenizer.vocab_size,
                         .hidden = l.hidden,
                         .intermediate = l.mlp,
                         .layers = l.layers,
                         .heads = l.heads,
                         .kv_heads = l.kv_heads,
                         .head_size = l.hidden / l.heads};
  text.rope_theta = l.rope_theta;
  text.rope_sections = l.rope_sections;
  text.tied_head = l.tied_head;
  text.bos_token = tokenizer.bos_id;
  text.eos_token = tokenizer.eos_id;
  text.pad_token = tokenizer.pad_id;
  text.become(model::text_kind_from_name(l.kind).value());
  return text;
}

model::VisionConfig square_tower(const ModelRecipe::Vision& v) {
  model::VisionConfig vision{.hidden = v.hidden,
                             .intermediate = v.mlp,
                             .layers = v.layers,
                             .heads = v.heads,
                             .image_size = v.image_side,
                             .patch_size = v.patch};
  if (v.kind == "siglip") {
    vision.kind = model::VisionKind::kSiglip;
    vision.norm_eps = 1e-6;
  }
  return vision;
}

model::VisionConfig qwen_tower(const ModelRecipe& recipe) {
  const ModelRecipe::Vision& v = recipe.vision;
  return {.kind = model::VisionKind::kQwen25,
          .hidden = v.hidden,
          .intermediate = v.mlp,
          .layers = v.layers,
          .heads = v.heads,
          .image_size = 0,
          .patch_size = v.patch,
          .norm_eps = 1e-6,
          .merge = v.merge,
          .window = v.window,
          .full_layers = v.full_layers,
          .output = recipe.language.hidden};
}

/// Throws UsageError for grids that cannot be read.
image::Preparation preparation_of(const Recipe& recipe) {
  const ModelRecipe::Vision& v = recipe.model.vision;
  try {
    return data::preparation_of({.side = static_cast<int32_t>(v.image_side),
                                 .patch = static_cast<int32_t>(v.patch),
                                 .geometry = "anyres",
                                 .grids = v.grids});
  } catch (const UsageError& error) {
    throw UsageError("{}: model.vision: {}", recipe.path.string(), error.what());
  }
}

void set_tiles(const Recipe& recipe, model::LlavaConfig& config) {
  const image::Preparation prepared = preparation_of(recipe);
  for (const image::Size& point : prepared.grid_points)
    config.grid_points.push_back({point.height, point.width});
  config.max_grid_tiles = recipe.model.vision.max_grid_tiles;
}

void set_marks(const Recipe& recipe, const data::DatasetManifest& set, model::LlavaConfig& config) {
  const bool qwen = config.family == model::Family::kQwen25Vl;
  if (!qwen && config.family != model::Family::kLlavaOnevision) return;
  const auto tokenizer = text::load_tokenizer(recipe.stages.at(0).data / set.tokenizer.file.file);
  const auto id = [&](const char* mark) { return tokenizer->piece_to_id(mark).value_or(-1); };
  config.video_token = id(qwen ? "<|video_pad|>" : "<video>");
  if (!qwen) return;
  config.vision_start_token = id("<|vision_start|>");
  config.vision_end_token = id("<|vision_end|>");
}

}  // namespace

model::ProjectorKind projector_kind(const std::string& word) {
  return word == "linear" ? model::ProjectorKind::kLinear : model::ProjectorKind::kMlp2xGelu;
}

model::LlavaConfig scratch_config(const Recipe& recipe, const data::DatasetManifest& set) {
  const ModelRecipe::Vision& v = recipe.model.vision;
  model::LlavaConfig config{.family = model::family_from_name(recipe.model.family).value()};
  const bool qwen = config.family == model::Family::kQwen25Vl;
  config.vision = qwen ? qwen_tower(recipe.model) : square_tower(v);
  config.text = text_of(recipe, set.tokenizer);
  config.image_token_index = set.tokenizer.image_token_id;
  config.projector = projector_kind(recipe.model.projector);
  config.vision_feature_layer = qwen ? -1 : v.feature_layer;
  config.keep_first_row = config.vision.kind != model::VisionKind::kClip;
  if (config.has_tiles()) set_tiles(recipe, config);
  set_marks(recipe, set, config);
  return config;
}

}  // namespace mm::run
