#pragma once
#include <vector>

#include "lib/data/dataset.h"
#include "lib/run/task_scores.h"
#include "lib/run/trained_model.h"

namespace mm::run {

struct TaskOptions {
  std::vector<EvalTask> tasks;
  int64_t limit = 0;  ///< first samples only, 0: all
  int64_t max_new_tokens = 32;
  std::filesystem::path answers;  ///< also write LLaVA's answer file; empty: none
};

/// Figures by task, as score_task gives them; perplexity: {"samples", "targets", "loss",
/// "perplexity"}; retrieval: {"samples", "picture_to_text", "text_to_picture"}, captions and
/// pictures ranked by length-normalised log-likelihood. Every sample is asked once, whatever the
/// tasks. EvalTask::kNames is evaluate_names' and refused here. Throws UsageError, DataError.
Json evaluate_tasks(const TrainedModel& trained, const data::Dataset& set,
                    const TaskReferences& references, const TaskOptions& options);

}  // namespace mm::run
