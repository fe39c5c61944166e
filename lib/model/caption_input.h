#pragma once
#include <ATen/core/Tensor.h>

#include "lib/model/diffusion_parts.h"

namespace mm::model {

/// Which rows of the captions [N, L, D] count. L is the longest of the micro-batch, at least 1.
struct CaptionRows {
  int64_t length = 1;
  at::Tensor keep;  ///< [N, L] bool, at least one a row; undefined: all
};

/// Of stored captions or of the text encoder's, a pure function of the batch. A caption that is
/// dropped, or empty, has the null caption's rows (one where that is zeros).
CaptionRows caption_rows(const DiffusionConfig& config, const Batch& batch);

/// Stored captions [N, L, D]: padding is zero, and dropped captions are `null_caption` [tokens, D],
/// or zeros where it is undefined.
at::Tensor stored_captions(const DiffusionConfig& config, const Batch& batch,
                           const at::Tensor& null_caption);

/// Rows of Batch::tokens that the text encoder reads: at most config.caption_tokens of each
/// caption, none of dropped ones.
struct CaptionTokens {
  at::Tensor rows;               ///< [T'] int64 of Batch::tokens
  at::Tensor positions;          ///< [T'] int64 inside the caption
  at::Tensor places;             ///< [T'] int64: row of [N * L]
  at::Tensor null_places;        ///< rows of [N * L] that the null caption takes
  std::vector<int64_t> borders;  ///< [N + 1], from 0 to T'
  int64_t length = 1;            ///< L
};
CaptionTokens caption_tokens(const DiffusionConfig& config, const Batch& batch);

/// Appends the block "captions": stored captions (or those of build.captions) through "NAME" as
/// `project` computes it, to a new slot [N, L, h], which is returned.
struct CaptionProjection {
  std::vector<ParamId> params;
  std::function<at::Tensor(const ParamView&, const at::Tensor&)> project;
  ParamId null_caption = -1;
};
Slot add_captions(Model& model, const DiffusionBuild& build, const CaptionProjection& projection);

}  // namespace mm::model
