#pragma once
#include <span>
#include <vector>

#include "lib/run/eval_samples.h"
#include "lib/run/task_scores.h"

namespace mm::run {

/// What a task scores: samples, and what the trained model answered to each, in order; no answers
/// where no task needs_answers.
struct TaskInputs {
  const EvalSamples& samples;
  const std::vector<std::string>& answers;
  const TaskReferences& references;
};

/// Samples beside their answers.
std::vector<AnsweredSample> answered_samples(const TaskInputs& inputs);

/// Figures by task, as score_task gives them; perplexity: {"samples", "targets", "loss",
/// "perplexity"}; retrieval: {"samples", "picture_to_text", "text_to_picture"}, captions and
/// pictures ranked by length-normalised log-likelihood. EvalTask::kNames is evaluate_names' and
/// refused here (InternalError). Throws DataError as the tasks do.
Json evaluate_tasks(const TrainedModel& trained, std::span<const EvalTask> tasks,
                    const TaskInputs& inputs);

}  // namespace mm::run
