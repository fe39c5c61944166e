#include "lib/run/eval_samples.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/score.h"

namespace mm::run {
namespace {

void check_same_preparation(const TrainedModel& trained, const data::Dataset& set) {
  if (set.manifest().tokenizer.file.xxh3_128 != trained.data.tokenizer.file.xxh3_128) {
    throw UsageError("{}: packed with another tokenizer than {} was trained with",
                     set.directory().string(), trained.run.string());
  }
  // A set of texts alone fits every model.
  const data::PictureEntry &these = set.manifest().pictures, &known = trained.data.pictures;
  if (set.manifest().counts.images > 0 &&
      (these.side != known.side || these.patches != known.patches ||
       these.varied != known.varied)) {
    throw UsageError("{}: pictures by \"{}\" of {} pixels, {} was trained on \"{}\" of {}",
                     set.directory().string(), these.geometry, these.side, trained.run.string(),
                     known.geometry, known.side);
  }
}

std::string prompt_text(const TrainedModel& trained, const data::SampleText& text) {
  const uint32_t end = text.trainable.empty() ? static_cast<uint32_t>(text.tokens.size())
                                              : text.trainable.front().begin;
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < end; ++i) {
    if (text.tokens[i] != trained.config.image_token_index) ids.push_back(text.tokens[i]);
  }
  return trained.tokenizer->decode(ids);
}

}  // namespace

EvalSamples read_eval_samples(const TrainedModel& trained, const data::Dataset& set,
                              int64_t limit) {
  check_same_preparation(trained, set);
  EvalSamples all{.origin = set.directory().string()};
  if (set.rows() == 0) throw DataError("{}: no sample in it", all.origin);
  const uint64_t rows =
      limit > 0 ? std::min<uint64_t>(set.rows(), static_cast<uint64_t>(limit)) : set.rows();
  for (uint64_t row = 0; row < rows; ++row) {
    Result<data::Sample> sample = set.read(row);
    if (!sample) throw DataError("{}: {}", set.directory().string(), sample.failure().message);
    std::vector<int32_t> ids;
    for (const data::TokenSpan& span : sample->text.trainable)
      ids.insert(ids.end(), sample->text.tokens.begin() + span.begin,
                 sample->text.tokens.begin() + span.end);
    all.keys.emplace_back(set.key(row));
    all.prompts.push_back(prompt_text(trained, sample->text));
    all.truths.push_back(trained.tokenizer->decode(ids));
    all.truth_ids.emplace_back(ids.begin(), ids.end());
    all.samples.push_back(std::move(*sample));
  }
  return all;
}

void check_one_picture(const EvalSamples& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t pictures = all.samples[i].text.image_begin.size();
    if (pictures != 1)
      throw DataError("{}: sample {} has {} pictures; expected one", all.origin, all.keys[i],
                      pictures);
  }
}

std::vector<std::string> answers_to(const TrainedModel& trained, const model::ParamView& params,
                                    const EvalSamples& all, int64_t max_new_tokens) {
  std::vector<const data::Sample*> prompts;
  for (const data::Sample& sample : all.samples) prompts.push_back(&sample);
  return answer(trained, params, prompts, max_new_tokens);
}

std::vector<double> truth_scores(const TrainedModel& trained, const model::ParamView& params,
                                 const EvalSamples& all, const data::Sample& picture) {
  std::vector<double> scores;
  for (const model::ContinuationScore& score : model::score_continuations(
           *trained.model, params, prompt_batch(trained, {&picture}), all.truth_ids))
    scores.push_back(score.per_token());
  return scores;
}

}  // namespace mm::run
