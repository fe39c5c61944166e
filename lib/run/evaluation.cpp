#include "lib/run/evaluation.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/html.h"
#include "lib/base/progress.h"
#include "lib/image/encode.h"
#include "lib/model/score.h"

namespace mm::run {
namespace {

/// The held-out pictures with their names.
struct NamedSamples {
  std::vector<std::string> keys, names;
  std::vector<data::Sample> samples;
  std::vector<std::vector<int64_t>> name_ids;  ///< of every sample's answer, end token included
};

void check_same_preparation(const TrainedModel& trained, const data::Dataset& set) {
  if (set.manifest().tokenizer.file.xxh3_128 != trained.data.tokenizer.file.xxh3_128) {
    throw UsageError("{}: packed with another tokenizer than {} was trained with",
                     set.directory().string(), trained.run.string());
  }
  if (set.manifest().pictures.side != trained.config.vision.image_size) {
    throw UsageError("{}: pictures of {} pixels, {} was trained on {}", set.directory().string(),
                     set.manifest().pictures.side, trained.run.string(),
                     trained.config.vision.image_size);
  }
}

NamedSamples read_samples(const TrainedModel& trained, const data::Dataset& set, int64_t limit) {
  NamedSamples all;
  const uint64_t rows =
      limit > 0 ? std::min<uint64_t>(set.rows(), static_cast<uint64_t>(limit)) : set.rows();
  for (uint64_t row = 0; row < rows; ++row) {
    Result<data::Sample> sample = set.read(row);
    if (!sample) throw DataError("{}: {}", set.directory().string(), sample.failure().message);
    if (sample->text.image_begin.size() != 1)
      throw DataError("{}: sample {} has {} pictures; expected one", set.directory().string(),
                      set.key(row), sample->text.image_begin.size());
    std::vector<int32_t> ids;
    for (const data::TokenSpan& span : sample->text.trainable)
      ids.insert(ids.end(), sample->text.tokens.begin() + span.begin,
                 sample->text.tokens.begin() + span.end);
    all.keys.emplace_back(set.key(row));
    all.names.push_back(trained.tokenizer->decode(ids));
    all.name_ids.emplace_back(ids.begin(), ids.end());
    all.samples.push_back(std::move(*sample));
  }
  return all;
}

/// Rank of each sample's own name among all names, given its picture.
std::vector<double> name_scores(const TrainedModel& trained, const model::ParamView& params,
                                const NamedSamples& all, const data::Sample& picture) {
  std::vector<double> scores;
  for (const model::ContinuationScore& score : model::score_continuations(
           *trained.model, params, prompt_batch(trained, {&picture}), all.name_ids))
    scores.push_back(score.per_token());
  return scores;
}

std::vector<NamedPicture> ask(const TrainedModel& trained, const model::ParamView& params,
                              const NamedSamples& all, const EvalOptions& options,
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
        {all.names[i], guesses[i], rank_of(name_scores(trained, params, all, *prompts[i]), i)});
    progress.add(1);
  }
  progress.finish();
  return outcomes;
}

/// The trained model before a white picture: it can only say what the names have in common, so one
/// pass serves all.
std::vector<NamedPicture> ask_blank(const TrainedModel& trained, const NamedSamples& all,
                                    const EvalOptions& options) {
  data::Sample blank = all.samples.front();
  std::fill(blank.pixels.begin(), blank.pixels.end(), uint8_t{255});
  const std::string guess =
      answer(trained, *trained.params, {&blank}, options.max_new_tokens).front();
  const std::vector<double> scores = name_scores(trained, *trained.params, all, blank);
  std::vector<NamedPicture> outcomes;
  for (size_t i = 0; i < all.names.size(); ++i)
    outcomes.push_back({all.names[i], guess, rank_of(scores, i)});
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
  check_same_preparation(trained, set);
  const NamedSamples all = read_samples(trained, set, options.limit);
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
