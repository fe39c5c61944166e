#include "lib/ckpt/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/hf_writer.h"
#include "lib/ckpt/mean_row.h"
#include "lib/ckpt/new_directory.h"
#include "lib/ckpt/weight_source.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

constexpr const char* kPreprocessor = "preprocessor_config.json";
constexpr const char* kTable = "language_model.model.embed_tokens.weight";
constexpr const char* kHead = "language_model.lm_head.weight";
constexpr int64_t kMaxSize = int64_t{1} << 24;  // above any published model

template <size_t kCount>
bool starts_with_any(std::string_view name, const std::array<std::string_view, kCount>& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

WeightSource open_directory(const fs::path& directory) {
  if (fs::is_directory(directory) && !HfWeights::looks_like(directory)) {
    const bool pickled = fs::exists(directory / "pytorch_model.bin") ||
                         fs::exists(directory / "pytorch_model.bin.index.json");
    throw DataError("{}: holds no model.safetensors nor its index{}", directory.string(),
                    pickled ? "; pytorch_model.bin is not read, save the model as safetensors"
                            : ", expected a Hugging Face directory");
  }
  return open_weights(resolve_target(directory));
}

std::string type_of(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() ? type->get<std::string>() : "(missing)";
}

int64_t size_at(const Json& config, const char* key, int64_t fallback, const std::string& where) {
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return fallback;
  const bool number = at->is_number_integer() && *at >= 1 && *at <= kMaxSize;
  if (!number) throw DataError("{}.{} is {}; expected a positive integer", where, key, at->dump());
  return at->get<int64_t>();
}

/// The tensor type of a part is stated once, by the whole.
void drop_dtype(Json& config) {
  config.erase("dtype");
  config.erase("torch_dtype");
}

/// What a LLaVA takes of the vision directory.
struct Tower {
  WeightSource weights;  ///< published names
  Json config;           ///< vision_config
  bool clip = true;
  size_t left_out = 0;
};

/// Both towers' configuration has the vision one's inside.
Json tower_config(const Json& config, const std::string& where) {
  const std::string type = type_of(config);
  Json vision = config;
  if (type == "clip" || type == "siglip") {
    vision = config.value("vision_config", Json());
    if (!vision.is_object()) throw DataError("{}: no vision_config in it", where);
    vision["model_type"] = type + "_vision_model";
  } else if (type != "clip_vision_model" && type != "siglip_vision_model") {
    throw DataError(
        "{}: model_type is {}; expected clip, clip_vision_model, siglip or siglip_vision_model",
        where, type);
  }
  drop_dtype(vision);
  return vision;
}

void name_tower(Tower& tower, const std::string& origin) {
  static constexpr std::array<std::string_view, 5> kNotInLlava = {
      "text_model.", "text_projection.", "visual_projection.", "logit_scale", "logit_bias"};
  // A vision tower alone may be stored without "vision_model.".
  static constexpr std::array<std::string_view, 6> kInTower = {
      "vision_model.", "embeddings.", "pre_layrnorm.", "encoder.", "post_layernorm.", "head."};
  std::vector<TensorSource> kept;
  for (TensorSource& tensor : tower.weights.tensors) {
    if (starts_with_any(tensor.name, kNotInLlava)) {
      ++tower.left_out;
      continue;
    }
    if (!starts_with_any(tensor.name, kInTower))
      throw DataError("{}: {} has no place in a vision tower", origin, tensor.name);
    const auto name = published_llava_name("vision_tower." + tensor.name);
    if (!name) continue;  // computed, not learned
    tensor.name = *name;
    kept.push_back(std::move(tensor));
  }
  tower.weights.tensors = std::move(kept);
}

bool has_tensor(const WeightSource& source, std::string_view beginning) {
  return std::ranges::any_of(source.tensors, [&](const TensorSource& tensor) {
    return tensor.name.starts_with(beginning);
  });
}

Tower open_tower(const fs::path& directory) {
  const std::string origin = directory.string(), where = (directory / "config.json").string();
  Tower tower{.weights = open_directory(directory)};
  tower.config = tower_config(tower.weights.config, where);
  tower.clip = type_of(tower.config) == "clip_vision_model";
  name_tower(tower, origin);
  const std::string prefix = "vision_tower.vision_model.";
  if (!has_tensor(tower.weights, prefix + "embeddings.patch_embedding.weight"))
    throw DataError("{}: no vision tower in it: no tensor vision_model.embeddings.patch_embedding",
                    origin);
  if (!tower.clip && !tower.config.contains("vision_use_head"))
    tower.config["vision_use_head"] = has_tensor(tower.weights, prefix + "head.");
  return tower;
}

void check_feature_layer(const Tower& tower, int64_t layer, const std::string& where) {
  const int64_t layers = size_at(tower.config, "num_hidden_layers", 12, where);
  if (layer < -layers - 1 || layer > layers)
    throw UsageError("--feature-layer {} is outside a tower of {} layers: {}", layer, layers,
                     where);
}

/// Names of the language directory as a LLaVA has them. Returns the vocabulary's rows.
uint64_t settle_language(WeightSource& source, const std::string& origin) {
  const std::string type = type_of(source.config);
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    throw DataError("{}/config.json: model_type is {}; expected llama, mistral, qwen2 or qwen3",
                    origin, type);
  std::vector<TensorSource> kept;
  for (TensorSource& tensor : source.tensors) {
    const auto name = published_llava_name(tensor.name);
    if (!name) continue;  // computed, not learned
    if (!name->starts_with("language_model."))
      throw DataError("{}: {} has no place in a {} model", origin, tensor.name, type);
    tensor.name = *name;
    kept.push_back(std::move(tensor));
  }
  source.tensors = std::move(kept);
  const auto table = std::ranges::find(source.tensors, kTable, &TensorSource::name);
  if (table == source.tensors.end())
    throw DataError("{}: no tensor model.embed_tokens.weight", origin);
  const uint64_t rows = table->shape.empty() ? 0 : table->shape[0];
  const int64_t stated = size_at(source.config, "vocab_size", 32000, origin + "/config.json");
  for (const TensorSource& tensor : source.tensors) {
    if (tensor.name != kTable && tensor.name != kHead) continue;
    if (tensor.shape.empty() || tensor.shape[0] != static_cast<uint64_t>(stated))
      throw DataError("{}: {} is {}, config.json states a vocabulary of {}", origin, tensor.name,
                      shape_text(tensor.shape), stated);
  }
  return rows;
}

/// Makes a row for the image token where there is none. Returns the token.
uint64_t settle_image_token(WeightSource& source, uint64_t rows, const JoinOptions& options,
                            const std::string& origin) {
  const uint64_t token = options.image_token.value_or(rows);
  if (token > rows)
    throw UsageError("--image-token {} is behind the vocabulary of {}, {} rows; expected 0 to {}",
                     token, origin, rows, rows);
  if (token < rows) {
    source.notes.push_back(fmt::format("image token {}: a row of the vocabulary, as it is", token));
    return token;
  }
  for (TensorSource& tensor : source.tensors) {
    if (tensor.name == kTable || tensor.name == kHead) tensor = with_mean_row(tensor, origin);
  }
  source.notes.push_back(fmt::format(
      "image token {}: a new row behind the vocabulary, the mean of the others", token));
  return token;
}

bool is_tied(const Json& config) {
  const auto flag = config.find("tie_word_embeddings");
  return flag != config.end() && flag->is_boolean() && flag->get<bool>();
}

/// The usual form with one tile a picture.
Json llava_config(const Tower& tower, Json text, uint64_t image_token, uint64_t rows,
                  const JoinOptions& options) {
  const bool tied = is_tied(text);
  drop_dtype(text);
  text["vocab_size"] = std::max(rows, image_token + 1);
  Json config{{"architectures", {"LlavaForConditionalGeneration"}},
              {"image_token_index", image_token},
              {"model_type", "llava"},
              {"multimodal_projector_bias", true},
              {"projector_hidden_act", "gelu"},
              {"text_config", std::move(text)},
              {"tie_word_embeddings", tied},
              {"vision_config", tower.config},
              {"vision_feature_layer", options.feature_layer},
              {"vision_feature_select_strategy", tower.clip ? "default" : "full"}};
  if (options.projector == "linear") config["projector_kind"] = options.projector;
  return config;
}

/// Rows and columns of tiles that LLaVA 1.6 has.
constexpr std::array<std::pair<int64_t, int64_t>, 5> kGrids = {
    {{1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 3}}};

void add_tiles(const Tower& tower, const std::string& where, Json& config) {
  const int64_t side = size_at(tower.config, "image_size", 224, where);
  config["architectures"] = {"LlavaNextForConditionalGeneration"};
  config["model_type"] = "llava_next";
  Json& points = config["image_grid_pinpoints"] = Json::array();
  for (const auto& [rows, columns] : kGrids) points.push_back({rows * side, columns * side});
}

void check_words(const JoinOptions& options) {
  if (options.family != "llava" && options.family != "llava_next")
    throw UsageError("--family {}: expected llava or llava_next", options.family);
  if (options.projector != "mlp2x_gelu" && options.projector != "linear")
    throw UsageError("--projector {}: expected mlp2x_gelu or linear", options.projector);
}

/// Settings of the language directory, how pictures are prepared from the vision one.
void choose_side_files(WeightSource& joined, const Tower& tower, const std::string& vision) {
  const auto is_preprocessor = [](const fs::path& file) {
    return file.filename() == kPreprocessor || file.filename() == "processor_config.json";
  };
  std::erase_if(joined.side_files, is_preprocessor);
  const auto found =
      std::ranges::find(tower.weights.side_files, kPreprocessor,
                        [](const fs::path& file) { return file.filename().string(); });
  if (found != tower.weights.side_files.end()) {
    joined.side_files.push_back(*found);
  } else {
    joined.notes.push_back(fmt::format("{}: no {} to copy", vision, kPreprocessor));
  }
}

/// All tensors of both, in the order of names. Each directory's notes stay.
void add_tower(WeightSource& joined, const Tower& tower, const std::string& vision) {
  joined.tensors.insert(joined.tensors.end(), tower.weights.tensors.begin(),
                        tower.weights.tensors.end());
  std::ranges::sort(joined.tensors, {}, &TensorSource::name);
  const auto twice =
      std::ranges::adjacent_find(joined.tensors, std::ranges::equal_to{}, &TensorSource::name);
  if (twice != joined.tensors.end())
    throw DataError("two tensors are called {} once spellings are evened out", twice->name);
  for (const std::string& note : tower.weights.notes) joined.notes.push_back(note);
  joined.open_files.insert(joined.open_files.end(), tower.weights.open_files.begin(),
                           tower.weights.open_files.end());
  if (tower.left_out > 0)
    joined.notes.push_back(fmt::format("{}: {} tensors of the text tower and projections left out",
                                       vision, tower.left_out));
}

}  // namespace

Join join(const fs::path& vision, const fs::path& language, const fs::path& out,
          const JoinOptions& options) {
  check_words(options);
  NewDirectory directory(out);
  const Tower tower = open_tower(vision);
  const std::string where = (vision / "config.json").string();
  check_feature_layer(tower, options.feature_layer, where);
  WeightSource joined = open_directory(language);
  const uint64_t rows = settle_language(joined, language.string());
  const auto table = std::ranges::find(joined.tensors, kTable, &TensorSource::name);
  if (!is_tied(joined.config) && !has_tensor(joined, kHead))
    throw DataError("{}: no tensor lm_head.weight, and config.json does not tie it",
                    language.string());
  const DType dtype = options.dtype.value_or(table->dtype);
  const uint64_t token = settle_image_token(joined, rows, options, language.string());
  joined.config = llava_config(tower, joined.config, token, rows, options);
  if (options.family == "llava_next") add_tiles(tower, where, joined.config);
  joined.config["torch_dtype"] = torch_dtype_name(dtype);
  add_tower(joined, tower, vision.string());
  choose_side_files(joined, tower, vision.string());
  if (options.dtype) {
    for (TensorSource& tensor : joined.tensors) tensor = as_dtype(std::move(tensor), dtype);
  }
  joined.notes.emplace_back("no projector in it: mmtrain run draws it from the recipe's seed");
  Join result{{.tensors = joined.tensors.size(), .notes = joined.notes}, token, tower.left_out};
  for (const TensorSource& tensor : joined.tensors) result.bytes += tensor_bytes(tensor);
  result.files = write_hugging_face(joined, directory.path(), options.max_shard_bytes);
  copy_side_files(joined, directory.path());
  directory.commit();
  return result;
}

}  // namespace mm::ckpt
