#include "lib/run/published_model.h"

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/pack_options.h"
#include "lib/model/hf_load.h"
#include "lib/run/hf_pictures.h"
#include "lib/run/stop_tokens.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kQwenMark = "<|image_pad|>";

fs::path tokenizer_path(const fs::path& directory) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (fs::is_regular_file(directory / name)) return directory / name;
  throw DataError("{}: no tokenizer.json and no tokenizer.model", directory.string());
}

/// The geometry of a family's pictures; of plain LLaVA any that makes squares.
bool fits(const std::string& geometry, const model::LlavaConfig& config) {
  if (config.has_tiles()) return geometry == "anyres";
  if (config.family == model::Family::kQwen25Vl) return geometry == "qwen";
  return geometry != "anyres" && geometry != "qwen";
}

void check_pictures(const HfPictures& pictures, const model::LlavaConfig& config,
                    const fs::path& directory) {
  const model::VisionConfig& v = config.vision;
  const auto differs = [&](const std::string& what, const auto& here, const auto& there) {
    if (here != there)
      throw DataError("{}: pictures are prepared with {}{}, config.json has {}", directory.string(),
                      here, what, there);
  };
  if (!fits(pictures.geometry, config))
    throw DataError("{}: pictures are prepared as \"{}\", which a {} model does not read",
                    directory.string(), pictures.geometry, model::family_name(config.family));
  if (config.family == model::Family::kQwen25Vl) {
    differs(" pixels a patch", pictures.patch, v.patch_size);
    differs(" patches merged", pictures.merge, v.merge);
    return;
  }
  differs(" pixels a side", pictures.side, v.image_size);
  std::vector<std::vector<int64_t>> points;
  for (const model::GridPoint& point : config.grid_points)
    points.push_back({point.height, point.width});
  if (config.has_tiles() && pictures.grid_points != points)
    throw DataError(
        "{}: image_grid_pinpoints of the pictures' preparation and of config.json differ",
        directory.string());
}

/// As a data set's manifest would record the preparation.
Json recorded_pictures(const HfPictures& pictures, const model::LlavaConfig& config) {
  Json json{{"geometry", pictures.geometry}, {"filter", pictures.filter}};
  if (config.family == model::Family::kQwen25Vl) {
    json["patch"] = pictures.patch;
    json["merge"] = pictures.merge;
    json["min_prepared_pixels"] = pictures.min_pixels;
    json["max_prepared_pixels"] = pictures.max_pixels;
    return json;
  }
  const int64_t side = config.vision.image_size;
  json["side"] = side;
  json["patch"] = config.vision.patch_size;
  if (!config.has_tiles()) return json;
  std::string grids;
  for (const model::GridPoint& point : config.grid_points)
    grids +=
        fmt::format("{}{}x{}", grids.empty() ? "" : ",", point.height / side, point.width / side);
  json["grids"] = grids;
  json["max_grid_tiles"] = config.max_grid_tiles;
  return json;
}

data::PictureEntry pictures_of(const HfPictures& pictures, const model::LlavaConfig& config) {
  return {.geometry = pictures.geometry,
          .filter = pictures.filter,
          .side = static_cast<int32_t>(pictures.side),
          .patch = static_cast<int32_t>(config.vision.patch_size),
          .patches = static_cast<int32_t>(config.patches_per_image()),
          .varied = config.varied_pictures()};
}

bool stands_for_pictures(std::string_view mark, const model::LlavaConfig& config,
                         const text::Tokenizer& tokenizer) {
  const std::optional<int32_t> id = tokenizer.piece_to_id(mark);
  return id && *id == config.image_token_index;
}

/// How questions are asked: by the mark of pictures and the marks of turns that the tokenizer has,
/// then by the decoder.
std::string template_of(const model::LlavaConfig& config, const text::Tokenizer& tokenizer) {
  if (stands_for_pictures(kQwenMark, config, tokenizer)) return "qwen2_vl";
  if (tokenizer.piece_to_id("<|im_start|>")) return "chatml";
  if (tokenizer.piece_to_id("<|start_header_id|>")) return "llama3";
  return config.text.kind == model::TextKind::kMistral ? "mistral" : "vicuna_v1";
}

/// Either mark will do for any family: exports have that of the template they were trained in.
void check_mark(const model::LlavaConfig& config, const text::Tokenizer& tokenizer,
                const fs::path& directory) {
  for (const std::string_view mark : {text::kImageMark, kQwenMark})
    if (stands_for_pictures(mark, config, tokenizer)) return;
  const bool qwen = config.family == model::Family::kQwen25Vl;
  const bool own = qwen && tokenizer.piece_to_id(kQwenMark).has_value();
  const std::string_view mark = own ? kQwenMark : text::kImageMark;
  throw DataError("{}: \"{}\" is token {} of the tokenizer, config.json has {} {}",
                  directory.string(), mark, tokenizer.piece_to_id(mark).value_or(-1),
                  qwen ? "image_token_id" : "image_token_index", config.image_token_index);
}

/// Before the weights are loaded.
void check_preparation(const Json& recorded, const fs::path& directory) {
  try {
    (void)data::preparation_of(data::picture_options_from(recorded, directory.string()));
  } catch (const UsageError& error) {
    if (!recorded.contains("grids"))
      throw DataError("{}: the preparation of pictures: {}", directory.string(), error.what());
    throw DataError("{}: image_grid_pinpoints, in tiles: {}", (directory / "config.json").string(),
                    error.what());
  }
}

}  // namespace

TrainedModel open_published(const fs::path& directory) {
  TrainedModel published{.run = directory};
  published.config = model::read_directory_config(directory);
  const fs::path tokenizer = tokenizer_path(directory);
  const std::string content = text::read_tokenizer(tokenizer);
  published.tokenizer = text::parse_tokenizer(content, tokenizer.string());
  published.data.tokenizer.file = {tokenizer.filename().string(), content.size(),
                                   xxh3_128_hex(content)};
  check_mark(published.config, *published.tokenizer, directory);
  const HfPictures pictures = read_hf_pictures(directory);
  check_pictures(pictures, published.config, directory);
  published.data.pictures = pictures_of(pictures, published.config);
  const Json recorded = recorded_pictures(pictures, published.config);
  check_preparation(recorded, directory);
  published.data.options["pictures"] = recorded;
  published.data.chat_template = template_of(published.config, *published.tokenizer);
  published.norm = pixel_norm(pictures.mean, pictures.std);
  published.stop_tokens =
      stop_tokens_of(published.config.text, directory / "generation_config.json");
  add_template_stop(published.data.chat_template, *published.tokenizer, published.stop_tokens);
  model::LoadedLlava loaded = model::load_llava(directory);
  for (at::Tensor& value : loaded.values) value = value.to(at::kFloat);
  published.model = std::make_unique<model::Model>(std::move(loaded.model));
  published.params = std::make_unique<model::SimpleParams>(
      *published.model, std::move(loaded.values),
      std::vector<bool>(published.model->params.size(), false));
  return published;
}

bool is_published(const fs::path& path) { return fs::is_regular_file(path / "config.json"); }

TrainedModel open_model(const fs::path& path) {
  return is_published(path) ? open_published(path) : open_trained(path);
}

}  // namespace mm::run
