#include "lib/ckpt/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/caption_encoder_export.h"
#include "lib/ckpt/commit.h"
#include "lib/ckpt/diffusers_names.h"
#include "lib/ckpt/dit_embedders.h"
#include "lib/ckpt/hf_writer.h"
#include "lib/ckpt/new_directory.h"
#include "lib/ckpt/peft.h"
#include "lib/ckpt/weight_source.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

/// transformers 5 says "dtype", older files "torch_dtype".
void state_dtype(Json& config, DType dtype) {
  if (!diffusers_class(config).empty()) return;  // its files alone say it
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = torch_dtype_name(dtype);
}

size_t write_own(const WeightSource& source, const fs::path& out) {
  CheckpointWriter writer({.run_ckpt = out / "ckpt", .save_id = new_save_id()});
  writer.begin();
  std::vector<ShardTensor> tensors;
  for (const TensorSource& tensor : source.tensors) {
    tensors.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .global_shape = tensor.shape,
                       .box = whole_box(tensor.shape),
                       .stream = tensor.stream});
  }
  const ShardReport report = writer.write_shard(tensors);
  Json state{{"schema", 1}, {"program", "mmckpt"}, {"config", source.config}};
  if (source.low_rank)
    state["contract"]["lora"] = {{"rank", source.low_rank->rank},
                                 {"alpha", source.low_rank->alpha}};
  if (source.low_rank && source.low_rank->dropout > 0)
    state["contract"]["lora"]["dropout"] = source.low_rank->dropout;
  writer.commit(std::span(&report, 1), state);
  return 1;
}

/// Beginning of the published names of a part, and what PEFT calls its module.
struct PartNames {
  std::string_view part, prefix, module;
};
constexpr std::array<PartNames, 9> kPartNames = {
    {{"vision", "vision_tower.", "vision_tower"},
     {"projector", "multi_modal_projector.", "multi_modal_projector"},
     {"language", "language_model.model.", "language_model"},
     {"language", "language_model.lm_head.", "lm_head"},
     {"vision", "visual.patch_embed.", "visual.patch_embed"},
     {"vision", "visual.blocks.", "visual.blocks"},
     {"projector", "visual.merger.", "visual.merger"},
     {"language", "model.", "language_model"},
     {"language", "lm_head.", "lm_head"}}};

/// Parts that were trained whole go into the adapter whole; the others are the base model's.
bool is_saved_whole(const PartNames& names, const WeightSource& source) {
  if (std::ranges::find(source.trained_parts, names.part) == source.trained_parts.end())
    return false;
  return std::ranges::none_of(source.tensors, [&](const TensorSource& tensor) {
    const auto same = [&](const PartNames& other) {
      return other.part == names.part && tensor.name.starts_with(other.prefix);
    };
    return is_low_rank_name(tensor.name) && std::ranges::any_of(kPartNames, same);
  });
}

/// Renames what belongs to the adapter and drops the rest. Returns adapter_config.json.
Json reduce_to_adapter(WeightSource& source, const std::string& origin) {
  if (!source.low_rank)
    throw UsageError("{}: has no low-rank adapters; write it with --to hf or own", origin);
  PeftFacts facts{.base_model = source.base_model, .target_modules = peft_targets(source.tensors)};
  std::vector<TensorSource> kept;
  for (const PartNames& names : kPartNames) {
    const bool whole = is_saved_whole(names, source);
    bool any = false;
    for (const TensorSource& tensor : source.tensors) {
      if (!tensor.name.starts_with(names.prefix) || !(whole || is_low_rank_name(tensor.name)))
        continue;
      kept.push_back(tensor);
      kept.back().name = peft_name(tensor.name);
      any = true;
    }
    if (whole && any) facts.modules_to_save.emplace_back(names.module);
  }
  std::ranges::sort(kept, {}, &TensorSource::name);
  source.tensors = std::move(kept);
  return peft_config(*source.low_rank, facts);
}

size_t write_peft(const WeightSource& source, const Json& config, const fs::path& out) {
  write_safetensors(out / "adapter_model.safetensors", source.tensors);
  write_file_atomic(out / "adapter_config.json", config.dump(2) + "\n");
  return 1;
}

/// A text encoder that was trained with the model, apart, as transformers reads it.
void write_caption_encoder(const WeightSource& source, const fs::path& out, Conversion& result) {
  const std::optional<WeightSource> text = caption_encoder_of(source);
  if (!text) return;
  const fs::path directory = out / "text_encoder";
  fs::create_directories(directory);
  result.files += write_hugging_face(*text, directory, UINT64_MAX);
  copy_side_files(*text, directory);
  result.notes.push_back(
      "its own text encoder is in text_encoder too, as a MegatronBertModel that transformers "
      "loads; the "
      "row for no caption, text_encoder.null_caption, is with the transformer alone");
}

/// Where diffusers, which knows no keys of ours, makes something else of the model.
void note_time_divisor(const Json& config, Conversion& result) {
  const auto divisor = config.find("time_embedding_divisor");
  const std::string name = diffusers_class(config);
  if (name.empty() || divisor == config.end() || !divisor->is_number_integer()) return;
  const int usual = name == "DiTTransformer2DModel" ? 127 : 128;
  if (*divisor == usual) return;
  result.notes.push_back(fmt::format(
      "diffusers does not read config.json's time_embedding_divisor = {}: its {} divides by {} and "
      "gives slightly other outputs; a model for diffusers is trained with "
      "model.transformer.time_divisor = {}",
      divisor->get<int64_t>(), name, usual, usual));
}

/// The source as it will be written: adapters, filler rows, type. Returns the adapter's
/// configuration for kPeft.
Json prepare(WeightSource& source, const std::string& origin, const ConvertOptions& options) {
  using To = ConvertOptions::To;
  if (!options.adapter.empty()) add_adapter(source, options.adapter);
  if (options.to != To::kOwn && !options.keep_filler_rows) drop_filler_rows(source);
  if (options.to == To::kHuggingFace) repeat_embedders(source);
  Json adapter_config;
  if (options.to == To::kPeft) {
    adapter_config = reduce_to_adapter(source, origin);
  } else if (source.low_rank && (options.to == To::kHuggingFace || options.merge_adapters)) {
    const size_t before = source.tensors.size();
    merge_low_rank(source.tensors, *source.low_rank, origin);
    source.notes.push_back(fmt::format("{} low-rank adapters merged, rank {}, alpha {}",
                                       (before - source.tensors.size()) / 2, source.low_rank->rank,
                                       source.low_rank->alpha));
    source.low_rank.reset();
  }
  if (options.dtype) {
    for (TensorSource& tensor : source.tensors)
      tensor = as_dtype(std::move(tensor), *options.dtype);
    state_dtype(source.config, *options.dtype);
  }
  return adapter_config;
}

}  // namespace

Conversion convert(const Target& in, const fs::path& out, const ConvertOptions& options) {
  using To = ConvertOptions::To;
  NewDirectory directory(out);
  WeightSource source =
      open_weights(in, options.config, options.raw_weights ? Averages::kLeave : Averages::kTake);
  const Json adapter_config = prepare(source, in.path.string(), options);
  Conversion result{.tensors = source.tensors.size(), .notes = source.notes};
  for (const TensorSource& tensor : source.tensors) result.bytes += tensor_bytes(tensor);
  if (options.to == To::kOwn) {
    result.files = write_own(source, directory.path());
    copy_side_files(source, directory.path() / "hf");
  } else {
    result.files = options.to == To::kPeft
                       ? write_peft(source, adapter_config, directory.path())
                       : write_hugging_face(source, directory.path(), options.max_shard_bytes);
    copy_side_files(source, directory.path());
  }
  if (options.to == To::kHuggingFace) {
    write_caption_encoder(source, directory.path(), result);
    note_time_divisor(source.config, result);
  }
  directory.commit();
  return result;
}

}  // namespace mm::ckpt
