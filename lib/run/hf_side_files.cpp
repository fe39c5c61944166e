#include "lib/run/hf_side_files.h"

#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/pack_options.h"
#include "lib/run/hf_pictures.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = 256 << 20;
constexpr const char* kPreprocessor = "preprocessor_config.json";
constexpr const char* kProcessor = "processor_config.json";

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
  write_json(out / kPreprocessor, to_json(pictures_of(recipe, config, set), processor_of(config)));
  write_json(out / kProcessor, processor_json(config, image_mark(set)));
  write_json(out / "tokenizer_config.json", tokenizer_config(set));
}

void copy_settings(const fs::path& from, const fs::path& out) {
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_regular_file() && is_setting(entry.path()))
      write_file_atomic(out / entry.path().filename(), read_file(entry.path(), kMaxBytes));
  }
}

/// Nothing where no file says how pictures are prepared, or one asks for what no set is packed
/// with.
std::optional<HfPictures> stated_pictures(const fs::path& directory) {
  try {
    return read_hf_pictures(directory);
  } catch (const Error&) {
    return std::nullopt;
  }
}

const Json& require_object(const Json& json, const fs::path& file, const char* what) {
  if (!json.is_object())
    throw DataError("{}: {} is no JSON object; mend the file in model.from, or remove it",
                    file.string(), what);
  return json;
}

Json json_of(const fs::path& file) {
  if (!fs::exists(file)) return Json::object();
  return require_object(read_json_file(file), file, "it");
}

/// `pictures` over what the directory says of them, in the file that does.
void set_pictures(const fs::path& out, const HfPictures& pictures, HfProcessor processor) {
  const fs::path own = out / kPreprocessor, whole = out / kProcessor;
  const bool inside = !fs::exists(own) && json_of(whole).contains("image_processor");
  const fs::path& file = inside ? whole : own;
  Json json = json_of(file);
  Json& settings = json.contains("image_processor") ? json["image_processor"] : json;
  require_object(settings, file, "image_processor");
  if (settings.contains("do_pad")) settings["do_pad"] = false;
  settings.update(to_json(pictures, processor));
  write_json(file, json);
}

/// The class that transformers makes of all settings, where the run made another model of `from`.
void set_processor(const fs::path& out, const Json& processor) {
  for (const std::string name : {kPreprocessor, kProcessor, "tokenizer_config.json"}) {
    Json json = json_of(out / name);
    if (name == kProcessor) {
      json.update(processor);
    } else if (json.contains("processor_class")) {
      json["processor_class"] = processor.at("processor_class");
    } else {
      continue;
    }
    write_json(out / name, json);
  }
}

/// What was copied, as the run trained: its normalisation, and its data set's preparation.
void settle_pictures(const fs::path& out, const Recipe& recipe, const model::LlavaConfig& config,
                     const data::DatasetManifest& set) {
  const std::optional<HfPictures> stated = stated_pictures(out);
  HfPictures trained = stated.value_or(HfPictures{});
  if (set.pictures.side > 0) trained = pictures_of(recipe, config, set);
  trained.mean = recipe.model.normalise.mean;
  trained.std = recipe.model.normalise.std;
  if (stated == trained || (!stated && set.pictures.side == 0)) return;
  set_pictures(out, trained, processor_of(config));
  if (config.has_tiles() && stated && stated->geometry != trained.geometry)
    set_processor(out, processor_json(config, image_mark(set)));
}

}  // namespace

void write_hf_side_files(const fs::path& run, const Recipe& recipe,
                         const model::LlavaConfig& config, const data::DatasetManifest& set) {
  const fs::path out = run / "hf", partial = run / "hf.partial";
  if (fs::exists(out)) return;
  fs::remove_all(partial);
  fs::create_directories(partial);
  if (!recipe.model.from.empty()) {
    copy_settings(recipe.model.from, partial);
    settle_pictures(partial, recipe, config, set);
  } else if (set.pictures.side > 0) {
    write_own(partial, recipe, config, set);
  }
  fs::rename(partial, out);
}

}  // namespace mm::run
