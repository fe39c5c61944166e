#pragma once
#include <string>

#include "lib/model/config_section.h"
#include "lib/model/declare_params.h"
#include "lib/model/linear.h"
#include "lib/model/text_encoder.h"

namespace mm::model {

// What the text encoders share.

/// A LayerNorm.
struct TextNorm {
  ParamId weight = -1, bias = -1;
  double eps = 1e-5;
};
TextNorm declare_text_norm(const DeclareParams& declare, const std::string& name, int64_t width,
                           double eps);
at::Tensor apply(const TextNorm& norm, const ParamView& params, const at::Tensor& x);
void append_params(std::vector<ParamId>& list, const TextNorm& norm);

/// [N, L, H * D] -> [N, L, H, D].
at::Tensor split_heads(const at::Tensor& x, int64_t heads);

/// The mean over the real tokens of each caption: [N, L, D] -> [N, D]; zeros for an empty caption.
at::Tensor mean_of_tokens(const at::Tensor& hidden, const at::Tensor& mask);

/// "text.layers.N" with its cost: attention of `width`, a feed-forward layer of `inner`.
TextStage text_layer_stage(int64_t number, int64_t width, int64_t inner);
/// The norm behind the last layer.
TextStage norm_stage(const TextNorm& norm);

/// Throws DataError unless the heads divide the width.
void require_heads(const Section& config, int64_t width, int64_t heads);
/// Whether config.json's "architectures" has this name.
bool names_architecture(const Section& config, const std::string& name);

}  // namespace mm::model
