#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "lib/base/json.h"
#include "lib/model/block.h"
#include "lib/step/instruction.h"

namespace mm::step {

/// What one step did on this rank and where its time went.
struct StepReport {
  int64_t step = 0;
  double global_targets = 0;
  double divisor = 0;    ///< of the loss, StepInput::divisor
  double loss_sum = 0;   ///< of weighted losses, over all data ranks
  double grad_norm = 0;  ///< before clipping
  /// The same by model::Part; their squares add up to its square. Frozen parts: 0.
  std::array<double, model::kPartCount> part_norms{};
  /// [micro_batches][samples] of this rank: sum of a sample's target losses, without weights. Empty
  /// where the model does not tell (Model::sample_losses_slot).
  std::vector<std::vector<double>> sample_losses;
  bool updated = false;
  double wall_ms = 0;
  std::array<double, kOpCount> op_ms{};  ///< running time by operation, waits left out
  double compute_busy_ms = 0;            ///< compute queue
  double group_busy_ms = 0;    ///< all group queues; in a collective, so waiting for peers included
  double ahead_ms = 0;         ///< work on the step that follows, beside this one
  double exposed_comm_ms = 0;  ///< compute queue waiting for a group's
  int64_t peak_slot_bytes = 0;  ///< values and gradients between segments; tapes not included

  double data_wait_ms() const { return op_ms[static_cast<size_t>(Op::kLoad)]; }
  /// What the gradient is the gradient of: mean loss of a target where all weights are 1; 0 without
  /// targets.
  double loss() const { return divisor > 0 ? loss_sum / divisor : 0; }
  /// Keys: step, loss, targets, grad_norm, part_norms {part: norm}, updated, wall_ms, data_wait_ms,
  /// compute_busy_ms, group_busy_ms, ahead_ms, exposed_comm_ms, peak_slot_bytes, op_ms {operation:
  /// ms} for operations that ran.
  Json to_json() const;
};

}  // namespace mm::step
