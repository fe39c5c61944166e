#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/run/drawing_evaluation.h"
#include "lib/run/engine.h"
#include "lib/run/evaluation.h"
#include "lib/run/published_model.h"
#include "lib/run/reconstruction.h"
#include "lib/run/stop_tokens.h"
#include "lib/run/task_evaluation.h"
#include "lib/run/validation_loss.h"

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

EvalResult evaluate(const TrainedModel& trained, const EvalSamples& all, const Json& options) {
  std::vector<EvalTask> tasks = tasks_of(options);
  const TaskReferences references = references_of(options);
  const std::string file = options.at("answers");
  const int64_t max_new_tokens = options.at("max_new_tokens");
  const bool with_names = std::erase(tasks, EvalTask::kNames) > 0;
  std::vector<std::string> answers;
  if (with_names || !file.empty() || std::any_of(tasks.begin(), tasks.end(), needs_answers))
    answers = answers_to(trained, *trained.params, all, max_new_tokens);
  const TaskInputs inputs{all, answers, references};
  const std::string name = trained.run.filename().string();
  if (!file.empty())
    write_answers(file, answered_samples(inputs),
                  trained.step > 0 ? fmt::format("{}-step{}", name, trained.step) : name);
  EvalResult result{.data = all.origin, .step = trained.step};
  if (with_names) result = evaluate_names(trained, all, answers, max_new_tokens);
  result.tasks = evaluate_tasks(trained, tasks, inputs);
  return result;
}

/// The set's prompts are in its own template, which may be another than the model's.
EvalSamples questions_for(TrainedModel& model, std::shared_ptr<const data::Dataset> set,
                          const Json& options) {
  add_template_stop(set->manifest().chat_template, *model.tokenizer, model.stop_tokens);
  return read_eval_samples(model, std::move(set), options.at("limit"));
}

EvalResult judge_names(const std::filesystem::path& from, const Json& options) {
  TrainedModel trained = open_model(from);
  auto set = data::Dataset::open(options.at("data").get<std::string>());
  const EvalSamples all = questions_for(trained, std::move(set), options);
  return evaluate(trained, all, options);
}

EvalResult judge_drawings(const TrainedDiffusion& trained, std::shared_ptr<const data::Dataset> set,
                          const Json& options) {
  TrainedModel judge = open_model(options.at("judge").get<std::string>());
  DrawOptions draw = usual_drawing(trained);
  draw.guidance = {.scale = options.at("guidance"),
                   .channels = options.at("guide_three").get<bool>() ? 3 : 0};
  const std::string remark = guidance_remark(trained.recipe, draw.guidance.scale);
  if (!remark.empty()) log::warn("eval", remark);
  draw.sampler.steps = options.at("steps");
  const EvalSamples names = questions_for(judge, std::move(set), options);
  return evaluate_drawings(trained, judge, names, draw, options.at("max_new_tokens"));
}

/// What is kept, and what is printed of it.
struct Evaluated {
  EvalResult result;
  std::string text;
};

Evaluated with_text(EvalResult result, const Json& options) {
  std::string text = result.rows.empty() ? "" : result.table(options.at("rows"));
  text += task_lines(result.tasks);
  return {std::move(result), std::move(text)};
}

/// Adds what RUN/eval.json has of other evaluations of the same checkpoint.
EvalResult with_before(EvalResult result, const std::filesystem::path& run) {
  const std::filesystem::path path = run / "eval.json";
  if (!std::filesystem::exists(path)) return result;
  const auto ignore = [&](const char* why) {
    log::warn("eval", "an eval.json that cannot be read is replaced",
              {{"file", path.string()}, {"why", why}});
  };
  try {
    result.keep(read_eval(path));
  } catch (const Error& error) {
    ignore(error.what());
  } catch (const Json::exception& error) {
    ignore(error.what());
  }
  return result;
}

EvalResult measure_loss(TrainedDiffusion& trained, const data::Dataset& set, const Json& options,
                        std::string& text) {
  const std::filesystem::path stored = options.at("encoded").get<std::string>();
  std::unique_ptr<EncodedSet> encoded;
  EncoderNeeds needs;
  if (!stored.empty()) {
    encoded = EncodedSet::open(stored, set);
    needs = {.vae = encoded->settings().channels == 0, .text = encoded->settings().text_width == 0};
  }
  use_encoders(trained, encoder_options(options), needs);
  const ValidationLoss loss =
      validation_loss(trained, *trained.params, set,
                      {.limit = options.at("limit"),
                       .encoded = encoded.get(),
                       .pictures_at_once = trained.recipe.frozen_pictures_at_once,
                       .captions_at_once = trained.recipe.frozen_captions_at_once});
  text = loss.table();
  EvalResult result{.data = set.directory().string(), .step = trained.step};
  result.tasks["validation_loss"] = loss.to_json();
  return result;
}

Evaluated evaluate_diffusion(const std::filesystem::path& run, const Json& options) {
  if (options.at("tasks") != Json::array({"names"}))
    throw UsageError(
        "--task: {} draws pictures, and the tasks are questions to a LLaVA; without --task it is "
        "scored by its validation loss, with --judge by what its pictures show",
        run.string());
  TrainedDiffusion trained = open_trained_diffusion(run);
  auto set = data::Dataset::open(options.at("data").get<std::string>());
  if (options.at("judge").get<std::string>().empty()) {
    Evaluated out;
    out.result = measure_loss(trained, *set, options, out.text);
    return out;
  }
  if (!options.at("encoded").get<std::string>().empty())
    throw UsageError(
        "--encoded: of the validation loss, and --judge looks at pictures; leave it out");
  use_encoders(trained, encoder_options(options));
  return with_text(judge_drawings(trained, std::move(set), options), options);
}

/// Options of other models' evaluations, by name.
void refuse_others(const std::filesystem::path& run, const Json& options) {
  const std::array<std::pair<const char*, const char*>, 7> others{
      {{"encoded", "--encoded"},
       {"vae", "--vae"},
       {"text_encoders", "--text-encoder"},
       {"text_padding", "--text-padding"},
       {"answers", "--answers"},
       {"references", "--references"},
       {"objects", "--objects"}}};
  for (const auto& [key, name] : others) {
    const Json& value = options.at(key);
    const bool given = value.is_number() ? value >= 0 : !value.empty() && value != "";
    if (given)
      throw UsageError("{}: {} is an autoencoder, which is scored by its reconstructions alone",
                       name, run.string());
  }
}

Evaluated evaluate_vae(const std::filesystem::path& run, const Json& options) {
  if (options.at("tasks") != Json::array({"names"}) ||
      !options.at("judge").get<std::string>().empty())
    throw UsageError(
        "{}: an autoencoder, which is scored by its reconstructions; leave --task and --judge out",
        run.string());
  refuse_others(run, options);
  const TrainedVae trained = open_trained_vae(run);
  const auto set = data::Dataset::open(options.at("data").get<std::string>());
  return with_text(evaluate_reconstruction(trained, *set, {.limit = options.at("limit")}), options);
}

Evaluated evaluate_any(const std::filesystem::path& from, const Json& options) {
  if (is_published(from)) return with_text(judge_names(from, options), options);
  if (is_diffusion_run(from)) return evaluate_diffusion(from, options);
  if (is_vae_run(from)) return evaluate_vae(from, options);
  return with_text(judge_names(from, options), options);
}

}  // namespace

int verb_eval(const Json& options) {
  tasks_of(options);  // a wrong name is said before a model is loaded
  const std::filesystem::path from = options.at("from").get<std::string>();
  auto [result, text] = evaluate_any(from, options);
  result.file_by_set();
  // A published directory stays as it is.
  if (!is_published(from)) result = with_before(std::move(result), from);
  const Json json = result.to_json();
  if (!is_published(from)) write_file_atomic(from / "eval.json", json.dump() + "\n");
  fmt::print("{}", options.at("json").get<bool>() ? json.dump(2) + "\n" : text);
  return 0;
}

}  // namespace mm::run
