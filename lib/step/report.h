#pragma once
#include <array>
#include <cstdint>

#include "lib/base/json.h"
#include "lib/step/instruction.h"

namespace mm::step {

/// What one step did on this rank and where its time went.
struct StepReport {
  int64_t step = 0;
  double global_targets = 0;
  double loss_sum = 0;   ///< over all data ranks
  double grad_norm = 0;  ///< before clipping
  bool updated = false;
  double wall_ms = 0;
  std::array<double, kOpCount> op_ms{};  ///< running time by operation, waits left out
  double compute_busy_ms = 0;            ///< compute queue
  double group_busy_ms = 0;    ///< all group queues; in a collective, so waiting for peers included
  double exposed_comm_ms = 0;  ///< compute queue waiting for a group's
  int64_t peak_slot_bytes = 0;  ///< values and gradients between segments; tapes not included

  double data_wait_ms() const { return op_ms[static_cast<size_t>(Op::kLoad)]; }
  /// Mean loss of a target; 0 without targets.
  double loss() const { return global_targets > 0 ? loss_sum / global_targets : 0; }
  /// Keys: step, loss, targets, grad_norm, updated, wall_ms, data_wait_ms, compute_busy_ms,
  /// group_busy_ms, exposed_comm_ms, peak_slot_bytes, op_ms {operation: ms} for operations that
  /// ran.
  Json to_json() const;
};

}  // namespace mm::step
