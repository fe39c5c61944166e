#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/picture_packer.h"
#include "lib/image/prepare.h"
#include "lib/image/tiling.h"
#include "lib/run/engine.h"
#include "lib/run/prompt_text.h"
#include "lib/run/published_model.h"

namespace mm::run {
namespace {

data::PictureOptions packed_with(const TrainedModel& trained) {
  return data::picture_options_from(trained.data.options.value("pictures", Json::object()),
                                    (trained.run / "data.json").string());
}

/// A picture of several tiles, or of a size of its own, as its data set was packed.
PreparedPicture read_varied(const TrainedModel& trained, const std::string& path,
                            const std::string& bytes) {
  const data::PictureOptions options = packed_with(trained);
  const auto decoded = image::decode(image::as_bytes(bytes), data::decode_options_of(options));
  if (!decoded) throw DataError("{}: {}", path, decoded.failure().message);
  const image::Preparation preparation = data::preparation_of(options);
  const image::Image tiles = image::prepare_tiles(decoded->image, preparation);
  const data::PictureGrid grid =
      data::grid_from(image::shape_of({decoded->image.width, decoded->image.height}, preparation));
  return {{tiles.rgb.begin(), tiles.rgb.end()}, grid};
}

PreparedPicture read_picture(const TrainedModel& trained, const std::string& path) {
  const std::string bytes = read_file(path, uint64_t{1} << 30);
  if (trained.config.varied_pictures()) return read_varied(trained, path, bytes);
  const auto geometry = image::geometry_from_name(trained.data.pictures.geometry);
  const auto filter = image::filter_from_name(trained.data.pictures.filter);
  const auto order = image::pass_order_from_name(packed_with(trained).pass_order);
  if (!geometry || !filter || !order)
    throw DataError("{}: unknown preparation {} {}", (trained.run / "data.json").string(),
                    trained.data.pictures.geometry, trained.data.pictures.filter);
  const auto decoded =
      image::decode_prepared(std::as_bytes(std::span(bytes.data(), bytes.size())),
                             {.geometry = *geometry,
                              .side = static_cast<int32_t>(trained.config.vision.image_size),
                              .filter = *filter,
                              .order = *order});
  if (!decoded) throw DataError("{}: {}", path, decoded.failure().message);
  return {{decoded->image.rgb.begin(), decoded->image.rgb.end()}, {}};
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n\t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n\t") - begin + 1);
}

model::GenerateOptions generate_options(const Json& options) {
  return {.max_new_tokens = options.at("max_tokens"),
          .sampling = {.temperature = options.at("temperature"),
                       .top_p = options.at("top_p"),
                       .top_k = options.at("top_k")},
          .seed = options.at("seed"),
          .beams = options.at("beams"),
          .length_penalty = options.at("length_penalty")};
}

/// Without a prompt a run is asked as it was trained, a published model in words.
data::Sample prompt_of(const TrainedModel& trained, const Json& options, const std::string& path) {
  PreparedPicture picture = read_picture(trained, path);
  const std::string prompt = options.at("prompt");
  if (prompt.empty() && trained.step > 0)
    return picture_prompt(trained, std::move(picture.pixels), picture.grid);
  return text_prompt(trained, prompt.empty() ? "Describe the picture." : prompt,
                     std::move(picture));
}

}  // namespace

int verb_caption(const Json& options) {
  const TrainedModel trained = open_model(options.at("from").get<std::string>());
  const auto paths = options.at("pictures").get<std::vector<std::string>>();
  std::vector<data::Sample> samples;
  for (const std::string& path : paths) samples.push_back(prompt_of(trained, options, path));
  std::vector<const data::Sample*> prompts;
  for (const data::Sample& sample : samples) prompts.push_back(&sample);
  const std::vector<Answer> said = answers(trained, prompts, generate_options(options));
  Json json{{"schema", 1}, {"step", trained.step}, {"captions", Json::array()}};
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string text = trimmed(said[i].text);
    json["captions"].push_back(
        {{"picture", paths[i]}, {"caption", text}, {"tokens", said[i].tokens}});
    if (!options.at("json").get<bool>())
      fmt::print("{}{}\n", paths.size() > 1 ? paths[i] + ": " : "", text);
  }
  if (options.at("json").get<bool>()) fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace mm::run
