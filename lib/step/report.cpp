#include "lib/step/report.h"

namespace mm::step {

Json StepReport::to_json() const {
  Json ops = Json::object();
  for (int op = 0; op < kOpCount; ++op) {
    if (op_ms[op] > 0) ops[std::string(op_name(static_cast<Op>(op)))] = op_ms[op];
  }
  Json parts = Json::object();
  for (size_t part = 0; part < part_norms.size(); ++part)
    parts[model::part_name(static_cast<model::Part>(part))] = part_norms[part];
  return {{"step", step},
          {"loss", loss()},
          {"targets", global_targets},
          {"grad_norm", grad_norm},
          {"part_norms", parts},
          {"updated", updated},
          {"wall_ms", wall_ms},
          {"data_wait_ms", data_wait_ms()},
          {"compute_busy_ms", compute_busy_ms},
          {"group_busy_ms", group_busy_ms},
          {"ahead_ms", ahead_ms},
          {"exposed_comm_ms", exposed_comm_ms},
          {"peak_slot_bytes", peak_slot_bytes},
          {"op_ms", ops}};
}

}  // namespace mm::step
