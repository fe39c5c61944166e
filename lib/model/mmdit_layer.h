#pragma once
#include "lib/model/diffusion_parts.h"

namespace mm::model {

/// Layer `number` of an MMDiT as a segment without slots: in [tokens [N, P, h], text [N, L, h],
/// conditioning [N, h]], out [tokens, text], the last layer [tokens]. Declares its parameters.
Segment mmdit_layer_segment(Model& model, const DiffusionBuild& build, int64_t number);

}  // namespace mm::model
