#include "lib/run/evaluation.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/html.h"
#include "lib/base/progress.h"
#include "lib/image/encode.h"
#include "lib/run/eval_samples.h"

namespace mm::run {
namespace {

std::vector<NamedPicture> ask(const TrainedModel& trained, const model::ParamView& params,
                              const EvalSamples& all, const EvalOptions& options,
                              const std::string& label) {
  std::vector<const data::Sample*> prompts;
  for (const data::Sample& sample : all.samples) prompts.push_back(&sample);
  const std::vector<std::string> guesses = answer(trained, params, prompts, options.max_new_tokens);
  Progress progress({.label = "ranking names, " + label,
                     .unit = "pictures",
                     .total = static_cast<int64_t>(prompts.size())});
  std::vector<NamedPicture> outcomes;
  for (size_t i = 0; i < prompts.size(); ++i) {
    outcomes.push_back(
        {all.truths[i], guesses[i], rank_of(truth_scores(trained, params, all, *prompts[i]), i)});
    progress.add(1);
  }
  progress.finish();
  return outcomes;
}

/// The trained model before a white picture: it can only say what the names have in common, so one
/// pass serves all.
std::vector<NamedPicture> ask_blank(const TrainedModel& trained, const EvalSamples& all,
                                    const EvalOptions& options) {
  data::Sample blank = all.samples.front();
  std::fill(blank.pixels.begin(), blank.pixels.end(), uint8_t{255});
  const std::string guess =
      answer(trained, *trained.params, {&blank}, options.max_new_tokens).front();
  const std::vector<double> scores = truth_scores(trained, *trained.params, all, blank);
  std::vector<NamedPicture> outcomes;
  for (size_t i = 0; i < all.truths.size(); ++i)
    outcomes.push_back({all.truths[i], guess, rank_of(scores, i)});
  return outcomes;
}

std::string data_uri(const TrainedModel& trained, const data::Sample& sample) {
  image::Image picture;
  picture.width = picture.height = static_cast<int32_t>(trained.config.vision.image_size);
  picture.rgb.assign(sample.pixels.begin(), sample.pixels.end());
  const std::string png = image::encode_png(picture);
  return "data:image/png;base64," + base64(std::as_bytes(std::span(png.data(), png.size())));
}

}  // namespace

EvalResult evaluate_names(const TrainedModel& trained, const data::Dataset& set,
                          const EvalOptions& options) {
  const EvalSamples all = read_eval_samples(trained, set, options.limit);
  check_one_picture(all, set);
  EvalResult result{.data = set.directory().string(), .step = trained.step};
  const std::vector<NamedPicture> outcomes = ask(trained, *trained.params, all, options, "trained");
  result.rows.push_back({"trained", score_names(outcomes)});
  result.rows.push_back(
      {"untrained", score_names(ask(trained, trained.untrained(), all, options, "untrained"))});
  result.rows.push_back({"trained, blank picture", score_names(ask_blank(trained, all, options))});
  for (size_t i = 0; i < outcomes.size(); ++i)
    result.pictures.push_back({all.keys[i], outcomes[i], data_uri(trained, all.samples[i])});
  return result;
}

}  // namespace mm::run
