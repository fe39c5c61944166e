#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/run/trained_model.h"

namespace mm::run {

/// Samples of a data set as questions with their answers.
struct EvalSamples {
  std::string origin;  ///< directory of the data set
  std::vector<std::string> keys;
  std::vector<std::string> prompts;  ///< text before the first trainable token, without pictures
  std::vector<std::string> truths;   ///< text of the trainable tokens
  std::vector<data::Sample> samples;
  std::vector<std::vector<int64_t>> truth_ids;  ///< trainable tokens, the end token included

  size_t size() const { return keys.size(); }
};

/// The first `limit` rows (0: all). Throws UsageError if the set was packed with another tokenizer
/// or other pictures than the run's, DataError for a damaged sample or where there is none.
EvalSamples read_eval_samples(const TrainedModel& trained, const data::Dataset& set, int64_t limit);

/// Throws DataError naming the first sample that does not have just one picture.
void check_one_picture(const EvalSamples& all);

/// Greedy answers to all of them, in order.
std::vector<std::string> answers_to(const TrainedModel& trained, const model::ParamView& params,
                                    const EvalSamples& all, int64_t max_new_tokens);

/// Log-likelihood a token of every answer, given the prompt and picture of `picture`.
std::vector<double> truth_scores(const TrainedModel& trained, const model::ParamView& params,
                                 const EvalSamples& all, const data::Sample& picture);

}  // namespace mm::run
