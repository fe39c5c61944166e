#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/data/dataset.h"
#include "lib/data/plan_cursor.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/run/engine.h"
#include "lib/run/memory_estimate.h"
#include "lib/run/model_setup.h"
#include "lib/run/run_recipe.h"
#include "lib/run/step_setup.h"
#include "lib/step/builder.h"
#include "lib/step/check.h"
#include "lib/step/draw.h"

namespace mm::run {
namespace {

/// What check found of one stage.
struct StageCheck {
  std::string name, drawing;
  uint64_t samples = 0, steps_per_epoch = 0;
  int64_t trainable = 0;
  int micro_batches = 0, instructions = 0;
  StageMemory memory;
};

int64_t elements(const model::Model& model, const std::vector<bool>& chosen) {
  int64_t sum = 0;
  for (size_t i = 0; i < model.params.size(); ++i) {
    if (chosen[i]) sum += c10::multiply_integers(model.params[i].shape);
  }
  return sum;
}

StageCheck check_stage(const StageMemoryInputs& in, const Json& options) {
  const Recipe& recipe = in.recipe;
  const model::Model& model = in.model;
  const StageRecipe& stage = recipe.stages[in.index];
  const int ranks = options.at("ranks");
  data::PlanCursor cursor(in.store.sizes(), plan_options(recipe, stage));
  const std::vector<bool> trainable = trainable_flags(model, stage.train);
  const optim::FlatGradSink sink(model, trainable, {.bucket_bytes = recipe.bucket_mib << 20});
  step::BuildOptions build = build_options(recipe, stage, trainable);
  build.micro_batches = data::micro_batches_per_rank(cursor.at(0).packs.size(), ranks);
  build.data_ranks = ranks;
  for (const optim::Bucket& bucket : sink.buckets())
    build.buckets.push_back({.params = bucket.params, .elements = bucket.flat.numel()});
  const step::Program program = step::build_step(model, build);
  const std::vector<step::Problem> problems = step::check(program);
  if (!problems.empty())
    throw InternalError("stage {}: {}", stage.name, step::describe(problems.front(), program));
  return {.name = stage.name,
          .drawing = options.at("draw").get<bool>() ? step::draw(program, model) : "",
          .samples = in.store.rows(),
          .steps_per_epoch = cursor.steps_in_epoch(),
          .trainable = elements(model, trainable),
          .micro_batches = build.micro_batches,
          .instructions = static_cast<int>(program.list.size()),
          .memory = stage_memory(in)};
}

void print_text(const Recipe& recipe, const std::vector<StageCheck>& stages, int64_t parameters) {
  fmt::print("{}: good; {} parameters, {} steps\n", recipe.path.string(), parameters,
             recipe.total_steps());
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageCheck& s = stages[i];
    fmt::print(
        "  {:<12} {:>6} steps ({:.1f} epochs of {} samples), {} trained parameters, {} "
        "micro-batches a rank, {} instructions\n",
        s.name, recipe.stages[i].steps,
        static_cast<double>(recipe.stages[i].steps) / static_cast<double>(s.steps_per_epoch),
        s.samples, s.trainable, s.micro_batches, s.instructions);
    fmt::print("    about {:.2f} GiB a rank; the costliest pack has {} tokens and {} pictures\n",
               s.memory.estimate.total() / (1 << 30), s.memory.costliest.tokens,
               s.memory.costliest.images);
    if (!s.drawing.empty()) fmt::print("{}\n", s.drawing);
  }
}

void print_json(const Recipe& recipe, const std::vector<StageCheck>& stages, int64_t parameters) {
  Json json{{"schema", 1},
            {"recipe", recipe.path.string()},
            {"parameters", parameters},
            {"steps", recipe.total_steps()},
            {"stages", Json::array()}};
  for (const StageCheck& s : stages) {
    json["stages"].push_back(
        {{"name", s.name},
         {"samples", s.samples},
         {"steps_per_epoch", s.steps_per_epoch},
         {"trained_parameters", s.trainable},
         {"micro_batches", s.micro_batches},
         {"instructions", s.instructions},
         {"costliest_pack",
          {{"tokens", s.memory.costliest.tokens}, {"images", s.memory.costliest.images}}},
         {"memory_bytes", s.memory.estimate.to_json()}});
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int verb_check(const Json& options) {
  const Recipe recipe = read_recipe(options.at("recipe").get<std::string>(),
                                    options.at("set").get<std::vector<std::string>>());
  if (options.at("reference").get<bool>()) {
    fmt::print("{}", recipe.reference);
    return 0;
  }
  if (options.at("resolved").get<bool>()) {
    fmt::print("{}", recipe.resolved);
    return 0;
  }
  if (const std::string warning = normalisation_warning(recipe.model); !warning.empty())
    log::warn("run", warning);
  std::vector<std::unique_ptr<data::Dataset>> sets;
  std::vector<data::DatasetManifest> manifests;
  for (const StageRecipe& stage : recipe.stages) {
    sets.push_back(data::Dataset::open(stage.data));
    manifests.push_back(sets.back()->manifest());
  }
  const std::unique_ptr<ModelFamily> family = make_family(recipe, manifests);
  const model::Model model = family->build();
  std::vector<StageCheck> stages;
  for (size_t i = 0; i < sets.size(); ++i)
    stages.push_back(check_stage({recipe, i, model, *family, *sets[i]}, options));
  const int64_t parameters = elements(model, std::vector<bool>(model.params.size(), true));
  std::vector<const data::SampleStore*> stores;
  for (const auto& set : sets) stores.push_back(set.get());
  for (const std::string& line : family->remarks(stores)) log::warn("run", line);
  options.at("json").get<bool>() ? print_json(recipe, stages, parameters)
                                 : print_text(recipe, stages, parameters);
  return 0;
}

}  // namespace mm::run
