#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/run/eval_result.h"
#include "lib/run/eval_samples.h"

namespace mm::run {

/// Ranks all names of `all` for each of its pictures by length-normalised log-likelihood, beside
/// `answers`, the trained model's own; the same for the untrained model (of a run) and for the
/// trained model fed a blank (white) picture. Throws DataError for a sample without just one
/// picture.
EvalResult evaluate_names(const TrainedModel& trained, const EvalSamples& all,
                          const std::vector<std::string>& answers, int64_t max_new_tokens);

/// `model`'s answer to each picture of `all`, and the rank of its true name among all of them.
std::vector<NamedPicture> name_pictures(const TrainedModel& trained, const model::ParamView& params,
                                        const EvalSamples& all,
                                        const std::vector<std::string>& answers,
                                        const std::string& label);

/// A sample's picture as the model saw it, PNG; of several tiles the first, which is the whole.
std::string picture_data_uri(const TrainedModel& trained, const data::Sample& sample);

}  // namespace mm::run
