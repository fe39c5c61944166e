#include "lib/run/start_weights.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/peft.h"
#include "lib/model/hf_load.h"
#include "lib/model/lora.h"
#include "lib/run/run_snapshot.h"
#include "lib/state/load_state.h"

namespace mm::run {
namespace {

void load_own(const Recipe& recipe, optim::ParamStore& params) {
  const state::Checkpoint checkpoint = state::open_checkpoint(recipe.init_from);
  const auto stored = [&](const std::string& name) {
    return std::ranges::find(checkpoint.manifest.tensors, name, &ckpt::TensorRecord::name) !=
           checkpoint.manifest.tensors.end();
  };
  const auto is_adapter = [](const std::string& name) {
    return name.find(".lora_") != std::string::npos;
  };
  std::vector<state::StateTensor> wanted = weight_tensors(params);
  std::erase_if(wanted, [&](const state::StateTensor& tensor) {
    return is_adapter(tensor.name) && !stored(tensor.name);
  });
  for (const ckpt::TensorRecord& record : checkpoint.manifest.tensors) {
    if (!is_adapter(record.name) || record.name.starts_with("optimizer.")) continue;
    if (std::ranges::find(wanted, record.name, &state::StateTensor::name) == wanted.end())
      throw UsageError(
          "init.from: {} has the adapter {}, this recipe has not; merge it first (mmckpt convert "
          "--to own --merge-lora), or set [lora] alike",
          recipe.init_from.string(), record.name);
  }
  state::load_tensors(checkpoint, wanted);
}

/// A projector of another kind than the stored one would be drawn in its place.
void refuse_other_projector(const Recipe& recipe, const ckpt::HfWeights& weights) {
  if (recipe.model.projector.empty()) return;
  const std::string prefix = "multi_modal_projector.";
  const bool linear = recipe.model.projector == "linear";
  for (const auto& [stored, tensor] : weights.tensors()) {
    const std::string name = ckpt::published_llava_name(stored).value_or("");
    if (!name.starts_with(prefix) || name.starts_with(prefix + "linear.") == linear) continue;
    throw UsageError(
        "model.projector is {}, {} holds {}; leave the key out, or start from a directory without "
        "projector",
        recipe.model.projector, recipe.model.from.string(), stored);
  }
}

}  // namespace

void load_llava_weights(const Recipe& recipe, const model::LlavaConfig& config,
                        optim::ParamStore& params) {
  // Adapters stand behind the published parameters.
  model::Model plain = params.model();
  plain.params.resize(plain.params.size() - 2 * plain.adapters.size());
  const std::string origin = recipe.model.from.string();
  const ckpt::HfWeights weights = ckpt::HfWeights::open(recipe.model.from);
  refuse_other_projector(recipe, weights);
  const std::vector<at::Tensor> values = model::load_llava_weights(
      plain, config, weights, origin, {.new_rows = true, .may_lack_projector = true});
  std::string drawn;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].defined()) {
      params.set(static_cast<model::ParamId>(i), values[i]);
    } else {
      drawn += (drawn.empty() ? "" : ", ") + plain.params[i].name;
    }
  }
  // What the directory lacks of a projector stays as drawn. Ranks other than 0 log warnings only.
  if (!drawn.empty())
    log::info("run", "not in model.from, drawn from run.seed",
              {{"from", origin}, {"tensors", drawn}});
}

void load_llava_adapters(const Recipe& recipe, const model::LlavaConfig& config,
                         optim::ParamStore& params) {
  const ckpt::PeftAdapter adapter =
      ckpt::open_peft(recipe.lora.from, model::family_name(config.family));
  const std::string origin = recipe.lora.from.string();
  if (adapter.rank != recipe.lora.rank || adapter.alpha != recipe.lora.alpha)
    throw UsageError("lora.from: {} has rank {} and alpha {}, the recipe {} and {}", origin,
                     adapter.rank, adapter.alpha, recipe.lora.rank, recipe.lora.alpha);
  const std::vector<model::ParamSpec>& specs = params.model().params;
  const std::vector<bool> flags = model::adapter_params(params.model());
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto found = adapter.tensors.find(specs[i].name);
    if (found == adapter.tensors.end()) {
      if (flags[i]) throw UsageError("lora.from: {} has no {}", origin, specs[i].name);
      continue;
    }
    params.set(static_cast<model::ParamId>(i),
               model::to_tensor(*found->second.file, *found->second.entry));
  }
  for (const auto& [name, tensor] : adapter.tensors) {
    if (std::ranges::find(specs, name, &model::ParamSpec::name) == specs.end())
      throw UsageError("lora.from: {} has {}, for which the recipe has no target", origin, name);
  }
}

void fill_start_weights(const Recipe& recipe, const ModelFamily& family,
                        optim::ParamStore& params) {
  params.initialise(recipe.seed);
  if (!recipe.model.from.empty()) family.load_published(params);
  if (!recipe.init_from.empty()) load_own(recipe, params);
  if (!recipe.lora.from.empty()) family.load_adapters(params);
}

}  // namespace mm::run
