#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/picture_packer.h"
#include "lib/image/prepare.h"
#include "lib/image/tiling.h"
#include "lib/run/engine.h"
#include "lib/run/trained_model.h"

namespace mm::run {
namespace {

/// A picture of several tiles, or of a size of its own, as its data set was packed.
data::Sample read_varied(const TrainedModel& trained, const std::string& path,
                         const std::string& bytes) {
  const data::PictureOptions options = data::picture_options_from(
      trained.data.options.value("pictures", Json::object()), (trained.run / "data.json").string());
  const auto decoded = image::decode(image::as_bytes(bytes), data::decode_options_of(options));
  if (!decoded) throw DataError("{}: {}", path, decoded.failure().message);
  const image::Preparation preparation = data::preparation_of(options);
  const image::Image tiles = image::prepare_tiles(decoded->image, preparation);
  const data::PictureGrid grid =
      data::grid_from(image::shape_of({decoded->image.width, decoded->image.height}, preparation));
  return picture_prompt(trained, {tiles.rgb.begin(), tiles.rgb.end()}, grid);
}

data::Sample read_picture(const TrainedModel& trained, const std::string& path) {
  const std::string bytes = read_file(path, uint64_t{1} << 30);
  if (trained.config.varied_pictures()) return read_varied(trained, path, bytes);
  const auto geometry = image::geometry_from_name(trained.data.pictures.geometry);
  const auto filter = image::filter_from_name(trained.data.pictures.filter);
  if (!geometry || !filter)
    throw DataError("{}: unknown preparation {} {}", (trained.run / "data.json").string(),
                    trained.data.pictures.geometry, trained.data.pictures.filter);
  const auto decoded =
      image::decode_prepared(std::as_bytes(std::span(bytes.data(), bytes.size())),
                             {.geometry = *geometry,
                              .side = static_cast<int32_t>(trained.config.vision.image_size),
                              .filter = *filter});
  if (!decoded) throw DataError("{}: {}", path, decoded.failure().message);
  return picture_prompt(trained,
                        std::vector<uint8_t>(decoded->image.rgb.begin(), decoded->image.rgb.end()));
}

}  // namespace

int verb_caption(const Json& options) {
  const TrainedModel trained = open_trained(options.at("from").get<std::string>());
  const auto paths = options.at("pictures").get<std::vector<std::string>>();
  std::vector<data::Sample> samples;
  for (const std::string& path : paths) samples.push_back(read_picture(trained, path));
  std::vector<const data::Sample*> prompts;
  for (const data::Sample& sample : samples) prompts.push_back(&sample);
  const std::vector<std::string> captions =
      answer(trained, *trained.params, prompts, options.at("max_new_tokens"));
  Json json{{"schema", 1}, {"step", trained.step}, {"captions", Json::array()}};
  for (size_t i = 0; i < paths.size(); ++i) {
    json["captions"].push_back({{"picture", paths[i]}, {"caption", captions[i]}});
    if (!options.at("json").get<bool>())
      fmt::print("{}{}\n", paths.size() > 1 ? paths[i] + ": " : "", captions[i]);
  }
  if (options.at("json").get<bool>()) fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace mm::run
