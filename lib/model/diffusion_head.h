#pragma once
#include <functional>

#include "lib/model/diffusion_parts.h"

namespace mm::model {

/// What differs in the last layers: shift and scale of the last norm, [N, 1, h] each, from the
/// conditioning, and the linear layer to p * p * C_out numbers a patch.
struct FinalLayer {
  std::function<std::pair<at::Tensor, at::Tensor>(const SegmentContext&, const at::Tensor&)>
      shift_and_scale;
  Linear linear;
  std::vector<ParamId> modulation_params;
};

/// Appends the last layer and the loss on slots `tokens` [N, P, h] and `conditioning`, and sets the
/// model's slots: "loss" (sum over pictures of weight * loss), "prediction" [N, C_out, H, W], in
/// fp32 (float64 in float64 runs) and only with Batch::want_logits, "sample_losses" [N], and its
/// terms "square_losses" and "variance_losses" [N], all float64. Where there is no clean picture
/// (sampling) losses are 0.
void add_diffusion_head(Model& model, const DiffusionBuild& build, const FinalLayer& layer,
                        Slot tokens, Slot conditioning);

}  // namespace mm::model
