#include "lib/step/instruction.h"

#include <array>

namespace mm::step {

std::string_view op_name(Op op) {
  static constexpr std::array<std::string_view, kOpCount> kNames = {
      "load",    "forward",   "backward",    "reduce",     "norm", "clip",
      "update",  "recompute", "weight_grad", "collective", "send", "receive",
      "unshard", "free",      "offload",     "fetch",      "ema",  "snapshot"};
  return kNames[static_cast<size_t>(op)];
}

}  // namespace mm::step
