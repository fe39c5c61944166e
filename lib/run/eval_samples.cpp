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
  if (set.manifest().counts.images > 0 &&
      set.manifest().pictures.side != trained.config.vision.image_size) {
    throw UsageError("{}: pictures of {} pixels, {} was trained on {}", set.directory().string(),
                     set.manifest().pictures.side, trained.run.string(),
                     trained.config.vision.image_size);
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
  EvalSamples all;
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

void check_one_picture(const EvalSamples& all, const data::Dataset& set) {
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t pictures = all.samples[i].text.image_begin.size();
    if (pictures != 1)
      throw DataError("{}: sample {} has {} pictures; expected one", set.directory().string(),
                      all.keys[i], pictures);
  }
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
