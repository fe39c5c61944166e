#include "lib/run/published_model.h"

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/model/hf_load.h"
#include "lib/run/hf_pictures.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<text::Tokenizer> open_tokenizer(const fs::path& directory) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (fs::is_regular_file(directory / name)) return text::load_tokenizer(directory / name);
  throw DataError("{}: no tokenizer.json and no tokenizer.model", directory.string());
}

/// Ends of a text: the configuration's, and those of generation_config.json, one or several.
std::vector<int64_t> stop_tokens_of(const fs::path& directory, const model::LlavaConfig& config) {
  std::vector<int64_t> stops{config.text.eos_token};
  const fs::path path = directory / "generation_config.json";
  if (!fs::is_regular_file(path)) return stops;
  const Json stated = read_json_file(path).value("eos_token_id", Json());
  for (const Json& id : stated.is_array() ? stated : Json::array({stated}))
    if (id.is_number_integer()) stops.push_back(id.get<int64_t>());
  return stops;
}

data::PictureEntry pictures_of(const HfPictures& pictures, const model::LlavaConfig& config,
                               const fs::path& directory) {
  if (pictures.side != config.vision.image_size)
    throw DataError("{}: pictures are prepared with {} pixels a side, config.json has {}",
                    directory.string(), pictures.side, config.vision.image_size);
  return {.geometry = pictures.geometry,
          .filter = pictures.filter,
          .side = static_cast<int32_t>(pictures.side),
          .patch = static_cast<int32_t>(config.vision.patch_size),
          .patches = static_cast<int32_t>(config.patches_per_image())};
}

}  // namespace

TrainedModel open_published(const fs::path& directory) {
  TrainedModel published{.run = directory};
  published.config = model::read_llava_config(directory / "config.json");
  if (published.config.family != model::Family::kLlava)
    throw DataError(
        "{}: pictures of a {} model have several tiles or sizes, which this verb does "
        "not prepare; expected model_type llava",
        directory.string(), model::family_name(published.config.family));
  published.tokenizer = open_tokenizer(directory);
  if (published.tokenizer->image_id() != published.config.image_token_index)
    throw DataError(
        "{}: \"<image>\" is token {} of the tokenizer, config.json has image_token_index "
        "{}",
        directory.string(), published.tokenizer->image_id(), published.config.image_token_index);
  const HfPictures pictures = read_hf_pictures(directory);
  published.data.pictures = pictures_of(pictures, published.config, directory);
  published.data.chat_template = "vicuna_v1";
  published.norm = pixel_norm(pictures.mean, pictures.std);
  published.stop_tokens = stop_tokens_of(directory, published.config);
  model::LoadedLlava loaded = model::load_llava(directory);
  for (at::Tensor& value : loaded.values) value = value.to(at::kFloat);
  published.model = std::make_unique<model::Model>(std::move(loaded.model));
  published.params = std::make_unique<model::SimpleParams>(
      *published.model, std::move(loaded.values),
      std::vector<bool>(published.model->params.size(), false));
  return published;
}

TrainedModel open_model(const fs::path& path) {
  return fs::is_regular_file(path / "config.json") ? open_published(path) : open_trained(path);
}

}  // namespace mm::run
