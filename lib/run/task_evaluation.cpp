#include "lib/run/task_evaluation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/progress.h"
#include "lib/score/retrieval.h"

namespace mm::run {
namespace {

constexpr size_t kSamplesAtOnce = 16;  ///< of a forward pass, bounds its memory

Json perplexity_json(const TrainedModel& trained, const EvalSamples& all) {
  Progress progress(
      {.label = "perplexity", .unit = "samples", .total = static_cast<int64_t>(all.size())});
  double loss = 0;
  int64_t targets = 0;
  for (size_t begin = 0; begin < all.size(); begin += kSamplesAtOnce) {
    std::vector<data::Sample> held;
    std::vector<const data::Sample*> some;
    for (size_t i = begin; i < std::min(all.size(), begin + kSamplesAtOnce); ++i)
      held.push_back(all.whole(i));
    for (const data::Sample& sample : held) some.push_back(&sample);
    const model::Batch batch = whole_batch(trained, some);
    const model::SlotValues values = model::eager_forward(*trained.model, *trained.params, batch);
    loss += values[static_cast<size_t>(trained.model->loss_slot)].item<double>();
    for (const data::Sample* sample : some) targets += data::size_of(sample->text).targets;
    progress.add(static_cast<int64_t>(some.size()));
  }
  progress.finish();
  if (targets == 0) throw DataError("no target in {} samples; perplexity needs one", all.size());
  const double mean = loss / static_cast<double>(targets);
  return {{"samples", all.size()},
          {"targets", targets},
          {"loss", mean},
          {"perplexity", std::exp(mean)}};
}

Json ranks_json(const score::Retrieval& r) {
  return {{"recall_at_1", r.recall_1},
          {"recall_at_5", r.recall_5},
          {"recall_at_10", r.recall_10},
          {"median_rank", r.median_rank},
          {"mean_rank", r.mean_rank}};
}

Json retrieval_json(const TrainedModel& trained, const EvalSamples& all) {
  Progress progress(
      {.label = "retrieval", .unit = "pictures", .total = static_cast<int64_t>(all.size())});
  std::vector<double> similarity;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<double> row = truth_scores(trained, *trained.params, all, all.whole(i));
    similarity.insert(similarity.end(), row.begin(), row.end());
    progress.add(1);
  }
  progress.finish();
  const score::SimilarityTable table{.similarity = similarity, .pictures = all.size()};
  return {{"samples", all.size()},
          {"picture_to_text", ranks_json(score::picture_to_text(table))},
          {"text_to_picture", ranks_json(score::text_to_picture(table))}};
}

}  // namespace

std::vector<AnsweredSample> answered_samples(const TaskInputs& inputs) {
  const EvalSamples& all = inputs.samples;
  MM_CHECK(inputs.answers.size() == all.size(), "{} answers to {} samples", inputs.answers.size(),
           all.size());
  std::vector<AnsweredSample> answered;
  for (size_t i = 0; i < all.size(); ++i)
    answered.push_back({all.keys[i], all.prompts[i], all.truths[i], inputs.answers[i]});
  return answered;
}

Json evaluate_tasks(const TrainedModel& trained, std::span<const EvalTask> tasks,
                    const TaskInputs& inputs) {
  std::vector<AnsweredSample> answered;
  if (std::any_of(tasks.begin(), tasks.end(), needs_answers)) answered = answered_samples(inputs);
  Json figures = Json::object();
  for (const EvalTask task : tasks) {
    Json& place = figures[std::string(task_name(task))];
    if (task == EvalTask::kPerplexity) {
      place = perplexity_json(trained, inputs.samples);
    } else if (task == EvalTask::kRetrieval) {
      check_one_picture(inputs.samples);
      place = retrieval_json(trained, inputs.samples);
    } else {
      place = score_task(task, answered, inputs.references);
    }
  }
  return figures;
}

}  // namespace mm::run
