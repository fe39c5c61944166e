#include "lib/step/liveness.h"

#include <algorithm>

namespace mm::step {

Liveness liveness(const Program& program) {
  const int count = static_cast<int>(program.list.size());
  Liveness live{std::vector<std::vector<model::Slot>>(count), std::vector<uint8_t>(count, 0)};
  // Backwards through the list: the first use met is the last.
  std::vector<std::vector<uint8_t>> used(program.micro_batches,
                                         std::vector<uint8_t>(program.slots, 0));
  std::vector<uint8_t> batch_used(program.micro_batches, 0);
  for (int i = count - 1; i >= 0; --i) {
    const Instruction& instruction = program.list[i];
    const bool again = instruction.op == Op::kRecompute;
    if (instruction.op != Op::kForward && !again) continue;
    const SegmentRow& row = program.segments[instruction.segment];
    const auto use = [&](model::Slot slot) {
      if (!used[instruction.micro_batch][slot]) live.free_slots[i].push_back(slot);
      used[instruction.micro_batch][slot] = 1;
    };
    for (model::Slot slot : row.in) use(slot);
    if (!again) std::for_each(row.out.begin(), row.out.end(), use);
    live.free_batch[i] = !batch_used[instruction.micro_batch];
    batch_used[instruction.micro_batch] = 1;
  }
  return live;
}

}  // namespace mm::step
