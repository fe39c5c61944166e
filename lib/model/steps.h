#pragma once
#include <string>
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

/// Slots inside one block, before they have a row in Model::slots: kLocalSlot, kLocalSlot - 1, ...
inline constexpr Slot kLocalSlot = -2;

/// The pieces of a block with nothing between them as one segment: what the builder makes of S1 |
/// gather | S2 | ... when the tensor axis has one rank. Boundaries are dropped; local slots live
/// inside only. Inputs are the model's slots read before they are written, outputs the ones
/// written; parameters and costs add up.
Segment join(std::string name, const std::vector<Step>& pieces);

}  // namespace mm::model
