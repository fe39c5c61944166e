#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/run/trained_model.h"

namespace mm::run {

/// Samples of a data set as questions with their answers, one a round of a conversation: the rounds
/// before it, with their true answers, are part of the question. Texts of all are held, pictures
/// are read when they are asked for.
struct EvalSamples {
  std::string origin;             ///< directory of the data set
  std::vector<std::string> keys;  ///< of the record; of its rounds after the first with "/2", ...
  std::vector<std::string> prompts;             ///< what the user says in this round: user_turn
  std::vector<std::string> truths;              ///< text of the trainable tokens
  std::vector<std::vector<int64_t>> truth_ids;  ///< trainable tokens, the end token included
  /// Up to the end of the answer, which alone is trainable; without pixels, unless others than the
  /// set's are put there.
  std::vector<data::Sample> samples;
  std::shared_ptr<const data::Dataset> set;
  std::vector<uint64_t> rows;  ///< of each in `set`

  size_t size() const { return keys.size(); }
  /// One with its pixels. Throws DataError for a damaged one.
  data::Sample whole(size_t i) const;
};

/// The first `limit` records (0: all). Throws UsageError if the set was packed with another
/// tokenizer or other pictures than the model's, DataError for a damaged sample or where there is
/// none.
EvalSamples read_eval_samples(const TrainedModel& trained, std::shared_ptr<const data::Dataset> set,
                              int64_t limit);

/// Throws DataError naming the first sample that does not have just one picture.
void check_one_picture(const EvalSamples& all);

/// Greedy answers to all of them, in order.
std::vector<std::string> answers_to(const TrainedModel& trained, const model::ParamView& params,
                                    const EvalSamples& all, int64_t max_new_tokens);

/// Log-likelihood a token of every answer, given the prompt and picture of `picture`.
std::vector<double> truth_scores(const TrainedModel& trained, const model::ParamView& params,
                                 const EvalSamples& all, const data::Sample& picture);

}  // namespace mm::run
