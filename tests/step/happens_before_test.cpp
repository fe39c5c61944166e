#include "lib/step/happens_before.h"

#include <doctest/doctest.h>

#include "lib/step/liveness.h"

using namespace mm::step;

namespace {

// Queue and waits only.
Instruction on(Queue queue, std::vector<int> waits = {}) {
  return {.queue = queue, .waits = std::move(waits)};
}

}  // namespace

TEST_CASE("happens_before: a queue orders its own instructions and nothing else") {
  const HappensBefore before({on(0), on(2), on(0), on(2)});
  CHECK(before(0, 2));
  CHECK(before(1, 3));
  CHECK_FALSE(before(2, 0));
  CHECK_FALSE(before(0, 0));
  CHECK_FALSE(before(0, 3));
  CHECK_FALSE(before(1, 2));
}

TEST_CASE("happens_before: waits carry what their target knew, through several queues") {
  // 0 -> 1 (queue 2) -> 3 (queue 3) -> 5 (queue 0); 2 and 4 stand by.
  const HappensBefore before({on(0), on(2, {0}), on(0), on(3, {1}), on(2), on(0, {3})});
  CHECK(before(0, 1));
  CHECK(before(0, 3));
  CHECK(before(1, 5));
  CHECK(before(3, 5));
  CHECK_FALSE(before(2, 3));
  CHECK_FALSE(before(4, 5));
}

TEST_CASE(
    "liveness: a value goes with its last reader, one that nobody reads at once, the batch with "
    "the last forward") {
  Program program{.micro_batches = 2, .slots = 3};
  program.segments.push_back({.out = {0}});
  program.segments.push_back({.in = {0}, .out = {1}});
  program.segments.push_back({.in = {1, 0}, .out = {2}});
  for (int m : {0, 1}) {
    for (int s : {0, 1, 2})
      program.list.push_back({.op = Op::kForward, .micro_batch = m, .segment = s});
  }
  const Liveness live = liveness(program);
  for (int m : {0, 1}) {
    CHECK(live.free_slots[3 * m].empty());
    CHECK(live.free_slots[3 * m + 1].empty());
    CHECK(live.free_slots[3 * m + 2] == std::vector<mm::model::Slot>{1, 0, 2});
    CHECK(live.free_batch[3 * m + 1] == 0);
    CHECK(live.free_batch[3 * m + 2] == 1);
  }
}
