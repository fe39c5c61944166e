#pragma once
#include <vector>

#include "lib/base/config.h"
#include "lib/run/recipe.h"

// One reader a file for the tables of a recipe; read_recipe (recipe.h) puts them together. A key's
// default, range and meaning stand where it is read: docs/recipes.md is made from them.
namespace mm::run::detail {

/// [model], with its sizes or the directory they come from.
ModelRecipe read_model(ConfigTable table);

/// [model.vision] and [model.language] of a vision-language family, for a start from scratch.
ModelRecipe::Vision read_vision(ConfigTable table, const std::string& family);
ModelRecipe::Language read_language(ConfigTable table, const std::string& family);

/// [lora].
LoraRecipe read_lora(ConfigTable table, const ModelRecipe& model);

/// [model.transformer] and [model.text_encoder], for a start from scratch.
void read_diffusion_sizes(ConfigTable model_table, ModelRecipe& model);

/// model.vae and model.text_model, text_model_2, text_model_3.
void read_frozen_encoders(ConfigTable model_table, ModelRecipe& model);

/// [model.autoencoder].
ModelRecipe::Autoencoder read_autoencoder(ConfigTable table);

/// [reconstruction].
ReconstructionRecipe read_reconstruction(ConfigTable table);

/// [sample]. The objective limits samplers and steps.
SampleRecipe read_sample(ConfigTable table, const DiffusionRecipe& objective);

/// [validation].
ValidationRecipe read_validation(ConfigTable table);

/// [diffusion].
DiffusionRecipe read_diffusion(ConfigTable table);

/// [ema].
EmaRecipe read_ema(ConfigTable table);

/// The table "loss" of the recipe or of a stage; `def` is what it differs from.
LossRecipe read_loss(ConfigTable owner, const ModelRecipe& model, const LossRecipe& def);

/// One [[stage]] of a run whose own keys have been read.
StageRecipe read_stage(ConfigTable table, const Recipe& run);

/// [precision], [comm], [checkpoint] and [loader]: what the machine decides.
void read_machine(ConfigTable root, Recipe& recipe);

/// [loader] and [data]: how data come to the ranks, never what they are.
void read_data_access(ConfigTable root, Recipe& recipe);

/// [metrics].
MetricSchedule read_metric_schedule(ConfigTable table);

}  // namespace mm::run::detail
