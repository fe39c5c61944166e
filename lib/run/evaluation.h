#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/run/eval_result.h"
#include "lib/run/eval_samples.h"

namespace mm::run {

/// Ranks all names of `all` for each of its pictures by length-normalised log-likelihood, beside
/// `answers`, the trained model's own; the same for the untrained model and for the trained model
/// fed a blank (white) picture. Throws DataError for a sample without just one picture.
EvalResult evaluate_names(const TrainedModel& trained, const EvalSamples& all,
                          const std::vector<std::string>& answers, int64_t max_new_tokens);

}  // namespace mm::run
