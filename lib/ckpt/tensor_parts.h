#pragma once
#include <cstdint>

#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt {

// Parts of a tensor that streams, cut along its first dimension. Nothing is held in memory.

/// Part `number` of `parts` equal ones. Throws DataError, naming the tensor, if its rows do not
/// divide, or its elements do not fill whole bytes.
TensorSource part_of(const TensorSource& tensor, uint64_t number, uint64_t parts);

/// The second half, then the first. Streams the tensor twice. Throws as part_of.
TensorSource halves_swapped(const TensorSource& tensor);

}  // namespace mm::ckpt
