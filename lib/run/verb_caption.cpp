#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/engine.h"
#include "lib/run/prepare_picture.h"
#include "lib/run/prompt_text.h"
#include "lib/run/published_model.h"

namespace mm::run {
namespace {

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
  PreparedPicture picture = prepare_picture(trained, read_file(path, uint64_t{1} << 30), path);
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
