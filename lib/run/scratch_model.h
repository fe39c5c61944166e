#pragma once
#include "lib/data/dataset_manifest.h"
#include "lib/model/llava_config.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// model.projector's word; empty: the usual one.
model::ProjectorKind projector_kind(const std::string& word);

/// The configuration of a vision-language model from scratch: sizes from [model], vocabulary and
/// special ids from the first stage's data set, whose tokenizer also knows the marks around
/// pictures and for frames ("<|vision_start|>", "<|vision_end|>", "<|video_pad|>" of Qwen2.5-VL,
/// "<video>" of OneVision; -1 where it has none). Throws UsageError for grids of tiles that cannot
/// be read, DataError or IoError for such a tokenizer.
model::LlavaConfig scratch_config(const Recipe& recipe, const data::DatasetManifest& set);

}  // namespace mm::run
