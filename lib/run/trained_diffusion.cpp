#include "lib/run/trained_diffusion.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/run_dir.h"
#include "lib/model/diffusion.h"
#include "lib/model/initial_draw.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/run_snapshot.h"
#include "lib/state/load_state.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

/// Values of all parameters: averages where the checkpoint has them and they are wanted.
std::vector<at::Tensor> read_values(const state::Checkpoint& checkpoint, const model::Model& model,
                                    Weights weights, bool& averaged) {
  std::vector<at::Tensor> values;
  std::vector<state::StateTensor> wanted;
  averaged = false;
  for (const model::ParamSpec& spec : model.params) {
    values.push_back(at::empty(spec.shape, at::kFloat));
    const std::string average = "ema." + spec.name;
    const bool has =
        weights == Weights::kAveraged &&
        std::ranges::find(checkpoint.manifest.tensors, average, &ckpt::TensorRecord::name) !=
            checkpoint.manifest.tensors.end();
    averaged = averaged || has;
    wanted.push_back({has ? average : spec.name, values.back()});
  }
  state::load_tensors(checkpoint, wanted);
  return values;
}

}  // namespace

model::SimpleParams TrainedDiffusion::untrained() const {
  std::vector<at::Tensor> values;
  for (const model::ParamSpec& spec : model->params)
    values.push_back(model::InitialDraw(spec, seed).whole());
  return {*model, std::move(values), std::vector<bool>(model->params.size(), false)};
}

bool is_diffusion_run(const fs::path& run) {
  return fs::exists(run / "recipe.toml") &&
         read_recipe(run / "recipe.toml", {}, RecipePaths::kMayBeAbsent).model.diffusion();
}

TrainedDiffusion open_trained_diffusion(const fs::path& run, Weights weights) {
  const RunDir directory = RunDir::open(run);
  TrainedDiffusion trained{.run = run};
  trained.recipe = read_recipe(directory.recipe(), {}, RecipePaths::kMayBeAbsent);
  if (!trained.recipe.model.diffusion())
    throw UsageError("{}: a run of family {}, which draws no pictures; expected dit, pixart or sd3",
                     run.string(), trained.recipe.model.family);
  const state::Checkpoint checkpoint = state::open_checkpoint(run);
  const std::string origin = checkpoint.directory.string();
  const RunSnapshot snapshot = RunSnapshot::from_json(checkpoint.manifest.state, origin);
  trained.step = snapshot.global_step;
  trained.seed = snapshot.seed;
  trained.config = model::diffusion_config_from_json(snapshot.config, origin);
  trained.objective = objective_of(trained.recipe.diffusion);
  trained.model =
      std::make_unique<model::Model>(model::build_diffusion(trained.config, trained.objective));
  trained.params = std::make_unique<model::SimpleParams>(
      *trained.model, read_values(checkpoint, *trained.model, weights, trained.averaged),
      std::vector<bool>(trained.model->params.size(), false));
  trained.data =
      data::manifest_from_json(read_json_file(run / "data.json"), (run / "data.json").string());
  trained.norm =
      pixel_norm(trained.recipe.model.normalise.mean, trained.recipe.model.normalise.std);
  if (trained.config.takes_captions())
    trained.tokenizer = text::load_tokenizer(run / trained.data.tokenizer.file.file);
  return trained;
}

Condition caption_condition(const TrainedDiffusion& trained, const std::string& prompt) {
  if (!trained.tokenizer)
    throw UsageError("{}: draws by class; give --label, 0 to {}", trained.run.string(),
                     trained.config.classes - 1);
  const auto most = static_cast<size_t>(trained.data.max_length);
  return {.caption = trained.tokenizer->encode_whole(prompt, most)};
}

}  // namespace mm::run
