#pragma once
#include "lib/ckpt/safetensors_writer.h"

namespace mm::run {

/// For crash tests: MM_FAULT=point[@rank][:nth] makes the rank (default: every) kill itself with
/// SIGKILL at the nth time (default: first) that it reaches the named point: "step" (a step begins)
/// or one of a save (ckpt::fault_points). Empty if the variable is not set. Throws UsageError for a
/// text it cannot read.
ckpt::FaultHook fault_hook(int rank);

}  // namespace mm::run
