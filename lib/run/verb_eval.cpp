#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/engine.h"
#include "lib/run/evaluation.h"
#include "lib/run/task_evaluation.h"

namespace mm::run {
namespace {

std::vector<EvalTask> tasks_of(const Json& options) {
  std::vector<EvalTask> tasks;
  for (const Json& name : options.at("tasks")) {
    const auto task = task_from_name(name.get<std::string>());
    if (!task)
      throw UsageError("--task {}: expected {}", name.get<std::string>(),
                       fmt::join(task_names(), ", "));
    tasks.push_back(*task);
  }
  return tasks;
}

TaskReferences references_of(const Json& options) {
  TaskReferences references;
  const auto captions = options.at("references").get<std::string>();
  const auto objects = options.at("objects").get<std::string>();
  if (!captions.empty()) read_captions(captions, references);
  if (!objects.empty()) read_objects(objects, references);
  return references;
}

}  // namespace

int verb_eval(const Json& options) {
  const std::filesystem::path run = options.at("from").get<std::string>();
  TaskOptions wanted{.tasks = tasks_of(options),
                     .limit = options.at("limit"),
                     .max_new_tokens = options.at("max_new_tokens"),
                     .answers = options.at("answers").get<std::string>()};
  const TaskReferences references = references_of(options);
  const TrainedModel trained = open_trained(run);
  const auto set = data::Dataset::open(options.at("data").get<std::string>());
  const auto names = std::find(wanted.tasks.begin(), wanted.tasks.end(), EvalTask::kNames);
  const bool with_names = names != wanted.tasks.end();
  if (with_names) wanted.tasks.erase(names);
  EvalResult result{.data = set->directory().string(), .step = trained.step};
  if (with_names)
    result = evaluate_names(trained, *set,
                            {.limit = wanted.limit, .max_new_tokens = wanted.max_new_tokens});
  if (!wanted.tasks.empty() || !wanted.answers.empty())
    result.tasks = evaluate_tasks(trained, *set, references, wanted);
  write_file_atomic(run / "eval.json", result.to_json().dump() + "\n");
  if (options.at("json").get<bool>()) {
    fmt::print("{}\n", result.to_json().dump(2));
  } else {
    fmt::print("{}{}", with_names ? result.table(options.at("rows")) : "", result.task_lines());
  }
  return 0;
}

}  // namespace mm::run
