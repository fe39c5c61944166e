#include "lib/run/model_setup.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/health/cpu_features.h"
#include "lib/model/hf_load.h"
#include "lib/model/llava.h"
#include "lib/model/lora.h"
#include "lib/model/tile_features.h"
#include "lib/model/vocab_rows.h"
#include "lib/run/scratch_model.h"

namespace mm::run {
namespace {

/// All data sets of a run speak the same ids and show pictures of one size; a set of texts has no
/// pictures to disagree about.
void check_sets_agree(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets) {
  const data::DatasetManifest& first = sets.front();
  for (size_t i = 1; i < sets.size(); ++i) {
    const auto names = [&](const auto& a, const auto& b) {
      return fmt::format("{} has {}, {} has {}", recipe.stages[0].data.string(), a,
                         recipe.stages[i].data.string(), b);
    };
    if (sets[i].tokenizer.file.xxh3_128 != first.tokenizer.file.xxh3_128) {
      throw UsageError("stage.{}.data: another tokenizer: {}; pack both with the same one", i,
                       names(first.tokenizer.file.xxh3_128, sets[i].tokenizer.file.xxh3_128));
    }
    if (sets[i].tokenizer.image_token_id != first.tokenizer.image_token_id) {
      throw UsageError("stage.{}.data: another image token id: {}", i,
                       names(first.tokenizer.image_token_id, sets[i].tokenizer.image_token_id));
    }
  }
}

/// Words of mmshard pack that give the pictures which the model reads.
std::string pack_words(const model::LlavaConfig& config) {
  const model::VisionConfig& v = config.vision;
  if (config.family == model::Family::kQwen25Vl)
    return fmt::format("--geometry qwen --patch {} --merge {}", v.patch_size, v.merge);
  std::string grids;
  for (const model::GridPoint& point : config.grid_points) {
    grids += fmt::format("{}{}x{}", grids.empty() ? "" : ",", point.height / v.image_size,
                         point.width / v.image_size);
  }
  return fmt::format(
      "--geometry anyres --side {} --patch {} --grids {}{}", v.image_size, v.patch_size, grids,
      config.max_grid_tiles > 0 ? fmt::format(" --max-grid-tiles {}", config.max_grid_tiles) : "");
}

/// The same words from what a data set was packed with.
std::string packed_words(const data::DatasetManifest& set) {
  const data::PictureEntry& p = set.pictures;
  const Json options = set.options.value("pictures", Json::object());
  const auto number = [&](const char* key, int64_t usual) {
    const auto at = options.find(key);
    return at != options.end() && at->is_number_integer() ? at->get<int64_t>() : usual;
  };
  if (p.geometry == "qwen")
    return fmt::format("--geometry qwen --patch {} --merge {}", p.patch, number("merge", 1));
  std::string words =
      fmt::format("--geometry {} --side {} --patch {}", p.geometry, p.side, p.patch);
  if (p.geometry != "anyres") return words;
  const auto grids = options.find("grids");
  if (grids != options.end() && grids->is_string())
    words += " --grids " + grids->get<std::string>();
  const int64_t most = number("max_grid_tiles", 0);
  return most > 0 ? words + fmt::format(" --max-grid-tiles {}", most) : words;
}

/// Tiles and pictures of any size: the set must be packed with the model's own words.
void check_varied(const std::string& where, const data::DatasetManifest& set,
                  const model::LlavaConfig& config) {
  const std::string want = pack_words(config), have = packed_words(set);
  if (set.pictures.varied && want == have) return;
  throw UsageError("{} was packed with {}; a model of family {} reads {}", where, have,
                   model::family_name(config.family), want);
}

void check_pictures(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets,
                    const model::LlavaConfig& config) {
  for (size_t i = 0; i < sets.size(); ++i) {
    const data::PictureEntry& p = sets[i].pictures;
    if (p.side == 0 || sets[i].counts.images == 0) continue;
    const std::string where = fmt::format("stage.{}.data: {}", i, recipe.stages[i].data.string());
    if (config.varied_pictures()) {
      check_varied(where, sets[i], config);
      continue;
    }
    if (p.varied) {
      throw UsageError(
          "{} has pictures of several tiles or sizes (geometry {}), the model reads one tile a "
          "picture; pack with --geometry crop, pad or squash",
          where, p.geometry);
    }
    if (p.side != config.vision.image_size || p.patches != config.patches_per_image()) {
      throw UsageError(
          "{} has pictures of {} pixels with {} tokens each, the model reads {} pixels and {} "
          "tokens (model.vision.image_side, patch)",
          where, p.side, p.patches, config.vision.image_size, config.patches_per_image());
    }
  }
}

/// Rows as the recipe wants them. The data set's ids must have a row each, and its image token must
/// be the model's: a published model gets new rows only where the recipe says so.
void settle_vocabulary(const Recipe& recipe, const data::DatasetManifest& set,
                       model::LlavaConfig& config) {
  const int64_t ids = set.tokenizer.vocab_size, image = set.tokenizer.image_token_id;
  const int64_t published = config.text.vocab;
  const int64_t rows = std::max(published, recipe.model.vocab_rows);
  const std::string data = recipe.stages[0].data.string();
  if (rows < ids) {
    throw UsageError(
        "model.from: {} has {} vocabulary rows{}, the data set {} has {} ids; pack with the "
        "model's own tokenizer, or set model.vocab_rows = {} for new rows",
        recipe.model.from.string(), published,
        rows == published ? "" : fmt::format(" and model.vocab_rows is {}", rows), data, ids, ids);
  }
  // A new image token has a new row.
  if (recipe.model.vocab_rows > published && image >= published) config.image_token_index = image;
  if (config.image_token_index != image) {
    throw UsageError(
        "model.from: {} has image token {}, the data set {} has {}; pack with a tokenizer in which "
        "<image> has the model's id",
        recipe.model.from.string(), config.image_token_index, data, image);
  }
  config.text.vocab = model::filled_rows(rows, recipe.model.vocab_multiple);
}

model::LoraOptions lora_options(const LoraRecipe& recipe) {
  model::LoraOptions options{.rank = recipe.rank, .alpha = recipe.alpha, .dropout = recipe.dropout};
  for (const model::Part part : model::kAllParts) {
    const auto targets = recipe.targets.find(model::part_name(part));
    if (targets != recipe.targets.end()) options.targets[part] = targets->second;
  }
  return options;
}

bool ends_with_any(const std::string& name, std::initializer_list<const char*> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const char* s) { return name.ends_with(s); });
}

/// Spread of a matrix product's weights: 1 / sqrt(inputs), so that values keep their size; what is
/// added to the residual stream is divided by sqrt(2 * layers) of its part, as in GPT-2 (Radford et
/// al. 2019, section 2.3). Tables (embeddings, positions, head) keep `base`.
double fan_in_std(const model::ParamSpec& spec, const model::LlavaConfig& config, double base) {
  const bool table = ends_with_any(spec.name, {"embed_tokens.weight", "lm_head.weight",
                                               "position_embedding.weight", "class_embedding"});
  if (table || spec.shape.size() < 2) return base;
  double inputs = 1;
  for (size_t d = 1; d < spec.shape.size(); ++d) inputs *= static_cast<double>(spec.shape[d]);
  const double layers = static_cast<double>(
      spec.part == model::Part::kVision ? config.vision_layers_run() : config.text.layers);
  const bool residual = ends_with_any(
      spec.name, {"out_proj.weight", "o_proj.weight", "fc2.weight", "down_proj.weight"});
  return residual ? 1 / std::sqrt(2 * layers * inputs) : 1 / std::sqrt(inputs);
}

/// A directory of one tile a picture as one of LLaVA 1.6's grids, which config.json leaves out: the
/// start of its second stage, from the first one's weights.
model::LlavaConfig with_tiles(const model::LlavaConfig& config, const std::string& origin) {
  Json json = model::to_json(config);
  json["model_type"] = model::family_name(model::Family::kLlavaNext);
  return model::llava_config_from_json(json, origin);
}

model::LlavaConfig published_config(const Recipe& recipe) {
  const std::string from = recipe.model.from.string();
  model::LlavaConfig config = model::read_directory_config(from);
  if (recipe.model.family == "llava_next" && config.family == model::Family::kLlava)
    config = with_tiles(config, from);
  if (recipe.model.family != "llava" && recipe.model.family != model::family_name(config.family)) {
    throw UsageError("model.family is {}, {} holds a model of family {}", recipe.model.family, from,
                     model::family_name(config.family));
  }
  if (recipe.model.projector.empty()) return config;
  if (config.family == model::Family::kQwen25Vl)
    throw UsageError(
        "model.projector: {} holds a model of family {}, which has a merger; leave "
        "the key out",
        from, model::family_name(config.family));
  config.projector = projector_kind(recipe.model.projector);
  return config;
}

}  // namespace

model::LlavaConfig configure_model(const Recipe& recipe,
                                   const std::vector<data::DatasetManifest>& sets) {
  MM_CHECK(!sets.empty(), "a recipe has at least one stage");
  check_sets_agree(recipe, sets);
  const data::DatasetManifest& set = sets.front();
  model::LlavaConfig config =
      recipe.model.from.empty() ? scratch_config(recipe, set) : published_config(recipe);
  settle_vocabulary(recipe, set, config);
  check_pictures(recipe, sets, config);
  model::check_config(config, recipe.path.string());
  return config;
}

model::Model build_model(const Recipe& recipe, const model::LlavaConfig& config) {
  model::Model model = model::build_llava(config);
  for (model::ParamSpec& spec : model.params) {
    if (spec.init != model::Init::kNormal) continue;
    if (spec.name == model::kImageNewline && !recipe.model.from.empty()) {
      // Drawn where the directory has none, as wide as LLaVA's; a start from scratch has the
      // recipe's spread.
      spec.init_std = 1 / std::sqrt(static_cast<double>(config.text.hidden));
      continue;
    }
    spec.init_std = recipe.model.init == "fan_in" ? fan_in_std(spec, config, recipe.model.init_std)
                                                  : recipe.model.init_std;
  }
  if (recipe.lora.on()) model::add_lora(model, lora_options(recipe.lora));
  return model;
}

std::vector<bool> trainable_flags(const model::Model& model,
                                  const std::vector<std::string>& parts) {
  // What no segment reads gets no gradient; left out here, it does not decay either.
  std::vector<bool> flags = model::params_in_use(model);
  const std::vector<bool> adapters = model::adapter_params(model);
  for (size_t i = 0; i < flags.size(); ++i) {
    const char* part = model::part_name(model.params[i].part);
    // Adapters freeze all else of their part.
    if (model::has_adapters(model, model.params[i].part)) flags[i] = adapters[i];
    flags[i] = flags[i] && std::find(parts.begin(), parts.end(), part) != parts.end();
  }
  return flags;
}

at::ScalarType compute_dtype(const std::string& word) {
  if (word == "float64") return at::kDouble;
  if (word == "fp16") return at::kHalf;
  if (word == "bf16") return at::kBFloat16;
  if (word == "fp32") return at::kFloat;
  return health::has_fast_bf16() ? at::kBFloat16 : at::kFloat;
}

}  // namespace mm::run
