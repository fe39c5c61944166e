#pragma once
#include <vector>

#include "lib/step/instruction.h"

namespace mm::step {

/// The order that queues and waits of one rank's list guarantee, as vector clocks: per instruction
/// and queue, how many instructions of that queue are surely done when it starts. Build
/// O(instructions x queues), query O(1).
class HappensBefore {
 public:
  /// Queues are >= 0; waits point backwards (`check` looks at both first).
  explicit HappensBefore(const std::vector<Instruction>& list);

  /// Whether `first` is surely done when `second` starts.
  bool operator()(int first, int second) const;

 private:
  std::vector<int> queue_, ordinal_;      // [instructions]
  std::vector<std::vector<int>> clocks_;  // [instructions][queues]
};

}  // namespace mm::step
