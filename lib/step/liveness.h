#pragma once
#include <cstdint>
#include <vector>

#include "lib/step/program.h"

namespace mm::step {

/// When values go, derived from the list: a slot's value after the last forward or recompute that
/// reads it (at once, if none does), a micro-batch's tensors after its last one. Gradients of slots
/// go with the backward of the slot's writer, tapes with theirs.
struct Liveness {
  std::vector<std::vector<model::Slot>>
      free_slots;  ///< [instructions] of the instruction's micro-batch, after it ran
  std::vector<uint8_t> free_batch;  ///< [instructions]
};
Liveness liveness(const Program& program);

}  // namespace mm::step
