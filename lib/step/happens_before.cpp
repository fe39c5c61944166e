#include "lib/step/happens_before.h"

#include <algorithm>

namespace mm::step {

HappensBefore::HappensBefore(const std::vector<Instruction>& list) {
  int queues = 0;
  for (const Instruction& i : list) queues = std::max(queues, i.queue + 1);
  std::vector<std::vector<int>> last(
      queues, std::vector<int>(queues, 0));  // per queue: clock after its last instruction
  clocks_.reserve(list.size());
  for (const Instruction& i : list) {
    std::vector<int> clock = last[i.queue];
    for (int wait : i.waits) {
      for (int q = 0; q < queues; ++q) clock[q] = std::max(clock[q], clocks_[wait][q]);
      clock[queue_[wait]] = std::max(clock[queue_[wait]], ordinal_[wait] + 1);
    }
    queue_.push_back(i.queue);
    ordinal_.push_back(last[i.queue][i.queue]);
    last[i.queue] = clock;
    ++last[i.queue][i.queue];
    clocks_.push_back(std::move(clock));
  }
}

bool HappensBefore::operator()(int first, int second) const {
  return clocks_[second][queue_[first]] > ordinal_[first];
}

}  // namespace mm::step
