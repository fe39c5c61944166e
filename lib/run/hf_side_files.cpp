#include "lib/run/hf_side_files.h"

#include <set>

#include "lib/base/file.h"
#include "lib/data/pack_options.h"
#include "lib/run/hf_pictures.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = 256 << 20;

bool is_setting(const fs::path& file) {
  static const std::set<std::string> kExtensions{".json", ".model", ".txt", ".jinja", ".tiktoken"};
  const std::string name = file.filename().string();
  return kExtensions.contains(file.extension().string()) && name != "config.json" &&
         !name.ends_with(".index.json") && fs::file_size(file) <= kMaxBytes;
}

void write_json(const fs::path& path, const Json& json) {
  write_file_atomic(path, json.dump(2) + "\n");
}

/// Qwen's tokenizers have their own mark of a picture, which Qwen's template reads.
std::string image_mark(const data::DatasetManifest& set) {
  return set.chat_template == "qwen2_vl" ? "<|image_pad|>" : "<image>";
}

/// Of a mark that is in no tokenizer file of ours: it is added here.
Json tokenizer_config(const data::DatasetManifest& set) {
  const data::TokenizerEntry& tokenizer = set.tokenizer;
  const std::string mark = image_mark(set);
  Json json{{"tokenizer_class",
             tokenizer.kind == "sentencepiece" ? "LlamaTokenizer" : "PreTrainedTokenizerFast"},
            {"clean_up_tokenization_spaces", false},
            {"image_token", mark}};
  if (mark != "<image>") return json;
  json["added_tokens_decoder"][std::to_string(tokenizer.image_token_id)] = {
      {"content", "<image>"}, {"special", true},     {"lstrip", false},
      {"rstrip", false},      {"normalized", false}, {"single_word", false}};
  return json;
}

HfProcessor processor_of(const model::LlavaConfig& config) {
  switch (config.family) {
    case model::Family::kLlavaNext:
      return HfProcessor::kLlavaNext;
    case model::Family::kLlavaOnevision:
      return HfProcessor::kLlavaOnevision;
    case model::Family::kQwen25Vl:
      return HfProcessor::kQwen2Vl;
    case model::Family::kLlava:
      break;
  }
  return config.vision.kind == model::VisionKind::kSiglip ? HfProcessor::kSiglip
                                                          : HfProcessor::kClip;
}

HfPictures pictures_of(const Recipe& recipe, const model::LlavaConfig& config,
                       const data::DatasetManifest& set) {
  HfPictures pictures{.geometry = set.pictures.geometry,
                      .filter = set.pictures.filter,
                      .side = config.vision.image_size,
                      .mean = recipe.model.normalise.mean,
                      .std = recipe.model.normalise.std};
  for (const model::GridPoint& point : config.grid_points)
    pictures.grid_points.push_back({point.height, point.width});
  if (config.family != model::Family::kQwen25Vl) return pictures;
  const data::PictureOptions packed = data::picture_options_from(
      set.options.value("pictures", Json::object()), recipe.stages.at(0).data.string());
  pictures.patch = config.vision.patch_size;
  pictures.merge = config.vision.merge;
  pictures.min_pixels = packed.min_pixels;
  pictures.max_pixels = packed.max_pixels;
  return pictures;
}

Json processor_json(const model::LlavaConfig& config, const std::string& mark) {
  Json json{{"image_token", mark}};
  const auto named = [&](const char* name) {
    json["processor_class"] = name;
    return json;
  };
  if (config.family == model::Family::kQwen25Vl) return named("Qwen2_5_VLProcessor");
  json["vision_feature_select_strategy"] = config.keep_first_row ? "full" : "default";
  if (config.family == model::Family::kLlavaOnevision) {
    json["num_image_tokens"] = config.patches_per_image();
    json["vision_aspect_ratio"] = fmt::format("anyres_max_{}", config.max_grid_tiles);
    return named("LlavaOnevisionProcessor");
  }
  json["patch_size"] = config.vision.patch_size;
  json["num_additional_image_tokens"] = config.vision.kind == model::VisionKind::kSiglip ? 0 : 1;
  return named(config.has_tiles() ? "LlavaNextProcessor" : "LlavaProcessor");
}

void write_own(const fs::path& out, const Recipe& recipe, const model::LlavaConfig& config,
               const data::DatasetManifest& set) {
  write_json(out / "preprocessor_config.json",
             to_json(pictures_of(recipe, config, set), processor_of(config)));
  write_json(out / "processor_config.json", processor_json(config, image_mark(set)));
  write_json(out / "tokenizer_config.json", tokenizer_config(set));
}

}  // namespace

void write_hf_side_files(const fs::path& run, const Recipe& recipe,
                         const model::LlavaConfig& config, const data::DatasetManifest& set) {
  const fs::path out = run / "hf";
  if (fs::exists(out)) return;
  fs::create_directories(out);
  if (recipe.model.from.empty()) {
    if (set.pictures.side > 0) write_own(out, recipe, config, set);
    return;
  }
  for (const auto& entry : fs::directory_iterator(recipe.model.from)) {
    if (entry.is_regular_file() && is_setting(entry.path()))
      write_file_atomic(out / entry.path().filename(), read_file(entry.path(), kMaxBytes));
  }
}

}  // namespace mm::run
