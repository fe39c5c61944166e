#include "lib/run/hf_side_files.h"

#include <set>

#include "lib/base/file.h"
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

/// The mark that pictures stand for is in no tokenizer file of ours: it is added here.
Json tokenizer_config(const data::TokenizerEntry& tokenizer) {
  Json json{{"tokenizer_class",
             tokenizer.kind == "sentencepiece" ? "LlamaTokenizer" : "PreTrainedTokenizerFast"},
            {"clean_up_tokenization_spaces", false},
            {"image_token", "<image>"}};
  json["added_tokens_decoder"][std::to_string(tokenizer.image_token_id)] = {
      {"content", "<image>"}, {"special", true},     {"lstrip", false},
      {"rstrip", false},      {"normalized", false}, {"single_word", false}};
  return json;
}

void write_own(const fs::path& out, const Recipe& recipe, const model::LlavaConfig& config,
               const data::DatasetManifest& set) {
  const HfPictures pictures{.geometry = set.pictures.geometry,
                            .filter = set.pictures.filter,
                            .side = config.vision.image_size,
                            .mean = recipe.model.normalise.mean,
                            .std = recipe.model.normalise.std};
  const bool siglip = config.vision.kind == model::VisionKind::kSiglip;
  write_json(out / "preprocessor_config.json", to_json(pictures, siglip));
  write_json(out / "processor_config.json",
             {{"processor_class", "LlavaProcessor"},
              {"image_token", "<image>"},
              {"patch_size", config.vision.patch_size},
              {"num_additional_image_tokens", siglip ? 0 : 1},
              {"vision_feature_select_strategy", config.keep_first_row ? "full" : "default"}});
  write_json(out / "tokenizer_config.json", tokenizer_config(set.tokenizer));
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
