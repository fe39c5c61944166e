#include "lib/model/llava_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "lib/base/error.h"
#include "lib/ckpt/flat_llava.h"
#include "lib/model/config_section.h"
#include "lib/model/qwen_vl_config.h"
#include "lib/model/text_config.h"
#include "lib/model/vision_config.h"

namespace mm::model {
namespace {

struct FamilyName {
  Family family;
  const char *model_type, *architecture;
};
constexpr std::array<FamilyName, 4> kFamilies = {
    {{Family::kLlava, "llava", "LlavaForConditionalGeneration"},
     {Family::kLlavaNext, "llava_next", "LlavaNextForConditionalGeneration"},
     {Family::kLlavaOnevision, "llava_onevision", "LlavaOnevisionForConditionalGeneration"},
     {Family::kQwen25Vl, "qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration"}}};

const FamilyName& name_of(Family family) {
  return *std::ranges::find(kFamilies, family, &FamilyName::family);
}

Family read_family(const Section& s) {
  const std::string type = s.word("model_type", "(missing)");
  if (const auto family = family_from_name(type)) return *family;
  throw DataError(
      "{}.model_type is \"{}\"; expected llava, llava_next, llava_onevision or qwen2_5_vl", s.where,
      type);
}

/// What an absent `image_grid_pinpoints` means: the grids of LLaVA 1.6, or all of up to 6 x 6
/// tiles.
std::vector<GridPoint> default_grid(Family family, int64_t side) {
  if (family == Family::kLlavaNext)
    return {{side, 2 * side},
            {2 * side, side},
            {2 * side, 2 * side},
            {3 * side, side},
            {side, 3 * side}};
  std::vector<GridPoint> points;
  for (int64_t rows = 1; rows <= 6; ++rows)
    for (int64_t columns = 1; columns <= 6; ++columns)
      points.push_back({rows * side, columns * side});
  return points;
}

std::vector<GridPoint> read_grid(const Section& s, const LlavaConfig& config) {
  const char* key = "image_grid_pinpoints";
  if (!s.has(key)) return default_grid(config.family, config.vision.image_size);
  const auto wrong = [&] {
    return DataError("{}.{}: expected a list of [height, width]", s.where, key);
  };
  constexpr size_t kMost = 1024;
  if (!s.json.at(key).is_array() || s.json.at(key).size() > kMost) throw wrong();
  std::vector<GridPoint> points;
  for (const Json& point : s.json.at(key)) {
    const Json pair = {{key, point}};
    const auto sides = Section{pair, s.where}.integers(key, {}, 1);
    if (sides.size() != 2) throw wrong();
    points.push_back({sides[0], sides[1]});
  }
  return points;
}

/// "anyres_max_9": 9.
int64_t read_most_tiles(const Section& s) {
  const std::string word = s.word("vision_aspect_ratio", "anyres_max_9"), prefix = "anyres_max_";
  const std::string digits = word.starts_with(prefix) ? word.substr(prefix.size()) : "";
  const bool number = !digits.empty() && digits.size() <= 4 &&
                      std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!number || std::stoll(digits) == 0)
    throw DataError("{}.vision_aspect_ratio is \"{}\"; expected anyres_max_ and a number of tiles",
                    s.where, word);
  return std::stoll(digits);
}

void check_grid(const LlavaConfig& config, const std::string& origin) {
  const int64_t side = config.vision.image_size;
  if (config.grid_points.empty())
    throw DataError("{}: image_grid_pinpoints is empty; expected at least one grid", origin);
  for (const GridPoint& p : config.grid_points) {
    if (p.height % side != 0 || p.width % side != 0) {
      throw DataError("{}: image_grid_pinpoints: {} x {} is no multiple of the tile, {} pixels",
                      origin, p.height, p.width, side);
    }
  }
  if (config.patches_per_image() != config.vision.grid_patches()) {
    throw DataError(
        "{}: a tile has {} features for {} patches; vision_feature_select_strategy does not fit "
        "the tower",
        origin, config.patches_per_image(), config.vision.grid_patches());
  }
}

constexpr const char* kProjectorKind = "projector_kind";
constexpr std::string_view kMlp2xGelu = "mlp2x_gelu", kLinear = "linear";

ProjectorKind read_projector_kind(const Section& s) {
  const std::string kind = s.word(kProjectorKind, std::string(kMlp2xGelu));
  if (kind != kMlp2xGelu && kind != kLinear) {
    throw DataError("{}.{} is \"{}\"; expected \"{}\" or \"{}\"", s.where, kProjectorKind, kind,
                    kMlp2xGelu, kLinear);
  }
  return kind == kLinear ? ProjectorKind::kLinear : ProjectorKind::kMlp2xGelu;
}

void read_projector(const Section& s, LlavaConfig& config) {
  const bool onevision = config.family == Family::kLlavaOnevision;
  config.projector = read_projector_kind(s);
  s.require("projector_hidden_act", "gelu", "gelu");
  config.vision_feature_layer =
      s.integer("vision_feature_layer", onevision ? -1 : -2, std::numeric_limits<int32_t>::min());
  const std::string select =
      s.word("vision_feature_select_strategy", onevision ? "full" : "default");
  if (select != "default" && select != "full") {
    throw DataError("{}.vision_feature_select_strategy is \"{}\"; expected \"default\" or \"full\"",
                    s.where, select);
  }
  config.keep_first_row = select == "full";
  config.projector_bias = s.boolean("multimodal_projector_bias", true);
}

void read_llava(const Section& s, LlavaConfig& config) {
  config.vision = read_vision_config(s.child("vision_config"));
  config.text = read_text_config(s.child("text_config"));
  // Either level may say so; transformers 5 writes both, published files one or two that differ.
  const bool inner = s.child("text_config").boolean("tie_word_embeddings", false);
  config.text.tied_head = s.boolean("tie_word_embeddings", inner);
  config.may_tie_head = inner && !config.text.tied_head;
  const bool onevision = config.family == Family::kLlavaOnevision;
  const char* index_key = s.has("image_token_index") ? "image_token_index" : "image_token_id";
  config.image_token_index = s.integer(index_key, onevision ? 151646 : 32000, 0);
  read_projector(s, config);
  if (config.has_tiles()) config.grid_points = read_grid(s, config);
  if (onevision) {
    config.max_grid_tiles = read_most_tiles(s);
    config.video_token = s.integer("video_token_index", 151647, -1);
  }
}

void add_tiles(const LlavaConfig& config, Json& json) {
  Json& points = json["image_grid_pinpoints"] = Json::array();
  for (const GridPoint& p : config.grid_points) points.push_back({p.height, p.width});
  if (config.family != Family::kLlavaOnevision) return;
  json["vision_aspect_ratio"] = fmt::format("anyres_max_{}", config.max_grid_tiles);
  json["video_token_index"] = config.video_token;
}

Json llava_json(const LlavaConfig& config) {
  Json json = {{"image_seq_length", config.patches_per_image()},
               {"image_token_index", config.image_token_index},
               {"multimodal_projector_bias", config.projector_bias},
               {"projector_hidden_act", "gelu"},
               {"text_config", text_config_json(config.text)},
               {"tie_word_embeddings", config.text.tied_head},
               {"vision_config", vision_config_json(config.vision)},
               {"vision_feature_layer", config.vision_feature_layer},
               {"vision_feature_select_strategy", config.keep_first_row ? "full" : "default"}};
  // A key of our own, absent where the published classes make the same.
  if (config.projector == ProjectorKind::kLinear) json[kProjectorKind] = std::string(kLinear);
  if (config.has_tiles()) add_tiles(config, json);
  return json;
}

}  // namespace

const char* family_name(Family family) { return name_of(family).model_type; }

std::optional<Family> family_from_name(std::string_view name) {
  for (const FamilyName& row : kFamilies)
    if (name == row.model_type) return row.family;
  return std::nullopt;
}

int64_t LlavaConfig::vision_layers_run() const {
  return vision_feature_layer < 0 ? vision.layers + 1 + vision_feature_layer : vision_feature_layer;
}

void check_config(const LlavaConfig& config, const std::string& origin) {
  const VisionConfig& v = config.vision;
  const TextConfig& t = config.text;
  const auto must = [&](bool holds, const std::string& what) {
    if (!holds) throw DataError("{}: {}", origin, what);
  };
  must(v.hidden % v.heads == 0,
       fmt::format("vision hidden size {} is no multiple of {} heads", v.hidden, v.heads));
  if (config.family == Family::kQwen25Vl) {
    check_qwen_vl_config(config, origin);
  } else {
    must(v.patch_size <= v.image_size,
         fmt::format("patch size {} is larger than the picture, {}", v.patch_size, v.image_size));
  }
  must(t.heads % t.kv_heads == 0,
       fmt::format("{} heads are no multiple of {} key/value heads", t.heads, t.kv_heads));
  must(t.head_size % 2 == 0,
       fmt::format("head size {} is odd; rotary positions need pairs", t.head_size));
  must(config.vision_layers_run() >= 0 && config.vision_layers_run() <= v.layers,
       fmt::format("vision_feature_layer {} is outside a tower of {} layers",
                   config.vision_feature_layer, v.layers));
  if (config.has_tiles()) check_grid(config, origin);
  must(config.image_token_index >= 0 && config.image_token_index < t.vocab,
       fmt::format("image_token_index {} is outside a vocabulary of {}", config.image_token_index,
                   t.vocab));
}

LlavaConfig llava_config_from_json(const Json& json, const std::string& origin) {
  if (!json.is_object()) throw DataError("{}: expected a JSON object", origin);
  ckpt::refuse_flat_llava(json, origin);
  const Section s{json, origin};
  LlavaConfig config{.family = read_family(s)};
  if (config.family == Family::kQwen25Vl) {
    read_qwen_vl_config(s, config);
  } else {
    read_llava(s, config);
  }
  check_config(config, origin);
  return config;
}

LlavaConfig read_llava_config(const std::filesystem::path& config_json) {
  return llava_config_from_json(read_json_file(config_json), config_json.string());
}

Json to_json(const LlavaConfig& config) {
  Json json = config.family == Family::kQwen25Vl ? qwen_vl_json(config) : llava_json(config);
  json["architectures"] = {name_of(config.family).architecture};
  json["model_type"] = name_of(config.family).model_type;
  json["torch_dtype"] = "float32";
  return json;
}

}  // namespace mm::model
