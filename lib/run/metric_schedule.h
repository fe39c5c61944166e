#pragma once
#include <cstdint>

namespace mm::run {

/// Steps between two writings of a group of metrics, 0: never. Loss, gradient norm, learning rates
/// and sizes are written for every step.
struct MetricSchedule {
  int64_t parts = 1;        ///< gradient norm of each part
  int64_t sources = 1;      ///< loss of each source and modality
  int64_t activations = 0;  ///< mean and variance of each block's output; costs a pass over them
  int64_t speed = 1;        ///< times, throughput, utilisation
  int64_t memory = 1;
  int64_t devices = 10;  ///< use of processor and GPU
};
/// Whether a group that is written every `every` steps is due after step `step` (from 1).
inline bool is_due(int64_t every, int64_t step) { return every > 0 && step % every == 0; }

}  // namespace mm::run
