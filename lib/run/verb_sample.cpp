#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/image/encode.h"
#include "lib/run/engine.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {
namespace {

model::SamplerKind sampler_of(const std::string& word) {
  if (word == "dpm") return model::SamplerKind::kDpmSolver;
  if (word == "euler") return model::SamplerKind::kFlowEuler;
  return model::SamplerKind::kDdim;
}

DrawOptions draw_options(const TrainedDiffusion& trained, const Json& options) {
  DrawOptions draw = usual_drawing(trained);
  if (const std::string word = options.at("sampler"); !word.empty())
    draw.sampler.kind = sampler_of(word);
  draw.sampler.steps = draw.sampler.kind == model::SamplerKind::kDpmSolver ? 25 : 50;
  if (const int64_t steps = options.at("steps"); steps > 0) draw.sampler.steps = steps;
  draw.guidance = {.scale = options.at("guidance"),
                   .channels = options.at("guide_three").get<bool>() ? 3 : 0};
  draw.seed = options.at("seed");
  if (options.at("width").get<int64_t>() > 0)
    draw.size = {.height = options.at("height").get<uint16_t>(),
                 .width = options.at("width").get<uint16_t>()};
  return draw;
}

/// A class by its name, or else by its number.
Condition label_condition(const TrainedDiffusion& trained, const std::string& word) {
  if (trained.config.takes_captions())
    throw UsageError("--label: {} draws by caption; give --prompt", trained.run.string());
  const std::vector<std::string>& names = trained.data.tokenizer.classes;
  if (const auto found = std::ranges::find(names, word); found != names.end())
    return {.label = found - names.begin()};
  int64_t number = -1;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error == std::errc() && stop == end && number >= 0 && number < trained.config.classes)
    return {.label = number};
  throw UsageError("--label {}: no name of a class, and no number of 0 to {}{}", word,
                   trained.config.classes - 1, suggestion(word, names));
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
  const TrainedDiffusion trained = open_trained_diffusion(
      options.at("from").get<std::string>(),
      options.at("raw_weights").get<bool>() ? Weights::kRaw : Weights::kAveraged);
  int64_t columns = 0;
  const std::vector<Condition> conditions = conditions_of(trained, options, columns);
  const DrawOptions draw = draw_options(trained, options);
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
