#pragma once
#include <cstdint>

#include "lib/data/dataset.h"
#include "lib/run/eval_result.h"
#include "lib/run/trained_model.h"

namespace mm::run {

struct EvalOptions {
  int64_t limit = 0;  ///< first pictures only, 0: all
  int64_t max_new_tokens = 32;
};

/// Names every picture of `set` greedily and ranks all of the set's names by length-normalised
/// log-likelihood given the picture; the same for the untrained model and for the trained model fed
/// a blank (white) picture. Throws UsageError if the set was packed with another tokenizer or
/// picture size than the run's, DataError for a damaged sample.
EvalResult evaluate_names(const TrainedModel& trained, const data::Dataset& set,
                          const EvalOptions& options);

}  // namespace mm::run
