#include <fmt/format.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/image/encode.h"
#include "lib/run/engine.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {
namespace {

DrawOptions draw_options(const TrainedDiffusion& trained, const Json& options) {
  DrawOptions draw = usual_drawing(trained);
  set_sampler(draw, options.at("sampler"), options.at("steps"));
  draw.guidance = {.scale = options.at("guidance"),
                   .channels = options.at("guide_three").get<bool>() ? 3 : 0};
  draw.seed = options.at("seed");
  if (options.at("width").get<int64_t>() > 0)
    draw.size = {.height = options.at("height").get<uint16_t>(),
                 .width = options.at("width").get<uint16_t>()};
  return draw;
}

/// Prompts or labels, in turn, as many as the grid has places.
std::vector<Condition> conditions_of(const TrainedDiffusion& trained, const Json& options,
                                     int64_t& columns) {
  std::vector<Condition> given;
  for (const auto& prompt : options.at("prompts").get<std::vector<std::string>>())
    given.push_back(caption_condition(trained, prompt));
  for (const auto& label : options.at("labels").get<std::vector<std::string>>())
    given.push_back(label_condition(trained, label));
  if (given.empty()) given.emplace_back();
  columns = options.at("columns");
  if (columns == 0) {
    columns = std::ssize(given);
    return given;
  }
  std::vector<Condition> all;
  const int64_t places = columns * options.at("rows").get<int64_t>();
  for (int64_t i = 0; i < places; ++i) all.push_back(given[static_cast<size_t>(i) % given.size()]);
  return all;
}

}  // namespace

int verb_sample(const Json& options) {
  TrainedDiffusion trained = open_trained_diffusion(
      options.at("from").get<std::string>(),
      options.at("raw_weights").get<bool>() ? Weights::kRaw : Weights::kAveraged);
  use_encoders(trained, encoder_options(options));
  int64_t columns = 0;
  const std::vector<Condition> conditions = conditions_of(trained, options, columns);
  const DrawOptions draw = draw_options(trained, options);
  const std::string remark = guidance_remark(trained.recipe, draw.guidance.scale);
  if (!remark.empty()) log::warn("sample", remark);
  const image::Image grid =
      picture_grid(draw_pictures(trained, *trained.params, conditions, draw), columns);
  std::filesystem::path out = options.at("out").get<std::string>();
  if (out.empty()) out = trained.run / "sample.png";
  write_file_atomic(out, image::encode_png(grid));
  if (options.at("json").get<bool>()) {
    fmt::print("{}\n", Json{{"schema", 1},
                            {"file", out.string()},
                            {"step", trained.step},
                            {"averaged", trained.averaged},
                            {"pictures", conditions.size()},
                            {"columns", columns},
                            {"width", draw.size.width},
                            {"height", draw.size.height},
                            {"steps", draw.sampler.steps},
                            {"guidance", draw.guidance.scale},
                            {"seed", draw.seed}}
                           .dump(2));
  } else {
    fmt::print("{}: {} pictures of {}x{}, step {}{}, {} sampling steps, guidance {}\n",
               out.string(), conditions.size(), draw.size.width, draw.size.height, trained.step,
               trained.averaged ? " (averaged)" : "", draw.sampler.steps, draw.guidance.scale);
  }
  return 0;
}

}  // namespace mm::run
