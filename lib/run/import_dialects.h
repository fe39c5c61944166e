#pragma once
#include <filesystem>
#include <span>

#include "lib/base/toml_text.h"
#include "lib/run/import_context.h"
#include "lib/run/import_pack.h"

// One function a kind of arguments; import_recipe.h puts them together.
namespace mm::run::detail {

/// The Hugging Face trainer's own arguments: batch, steps, schedule, optimizer, precision, saving,
/// logging. The stage's `train` list must stand. Returns the processes of the run, 0 if unknown.
int64_t map_hf_trainer(ImportContext& context);

/// LLaVA's and LLaVA-NeXT's arguments (model, data, freezing), then the trainer's. Fills `pack`.
void map_llava(ImportContext& context, const std::filesystem::path& script, PackCommand& pack);

/// Where the data are and where they are packed to: --data_path of both dialects, told missing
/// where it is not given.
void set_data(ImportContext& context, PackCommand& pack);

/// LLaVA's adapters as [lora]. The stage's rates must stand.
void map_llava_lora(ImportContext& context);

/// Arguments of Megatron-LM's examples/multimodal. Fills `pack`.
void map_megatron(ImportContext& context, PackCommand& pack);

/// What is said of flags that no code maps.
std::span<const FlagRemark> llava_remarks();
std::span<const FlagRemark> hf_trainer_remarks();
std::span<const FlagRemark> megatron_remarks();

/// A word of a recipe as TOML text. (toml_text takes a literal for a truth value.)
inline std::string toml_word(std::string_view word) { return toml_text(word); }

void set_warmup(ImportContext& context, int64_t warmup, std::string_view flag);
/// What fp16 runs begin with, as a power of two; `scale` > 0.
void set_loss_scale(ImportContext& context, double scale, std::string_view flag);
/// A linear decay from the end of the warm-up: our wsd with that many steps of decay.
void set_linear(ImportContext& context, std::string_view flag);

}  // namespace mm::run::detail
