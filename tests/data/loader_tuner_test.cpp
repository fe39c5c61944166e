#include "lib/data/loader_tuner.h"

#include <doctest/doctest.h>

using namespace mm::data;

namespace {

void run(LoaderTuner& tuner, int steps, const LoaderMoment& moment) {
  for (int i = 0; i < steps; ++i) tuner.note(moment);
}

constexpr TunerLimits kLimits{
    .threads = 1, .prefetch_steps = 2, .max_threads = 4, .max_prefetch_steps = 6};

}  // namespace

TEST_CASE("tuner: without waits nothing changes, and single slow steps do not count") {
  LoaderTuner tuner(kLimits);
  run(tuner, 100, {.wait_ms = 0.1, .interval_ms = 100, .work_left = true});
  for (int i = 0; i < 80; ++i)
    tuner.note({.wait_ms = i % 8 < 3 ? 50.0 : 0.0, .interval_ms = 100, .work_left = true});
  CHECK(tuner.tuning().threads == 1);
  CHECK(tuner.tuning().prefetch_steps == 2);
}

TEST_CASE("tuner: busy threads get help up to the limit, then steps ahead grow") {
  LoaderTuner tuner(kLimits);
  run(tuner, 8, {.wait_ms = 50, .interval_ms = 100, .work_left = true});
  CHECK(tuner.tuning().threads == 2);
  CHECK(tuner.tuning().prefetch_steps == 2);
  run(tuner, 200, {.wait_ms = 50, .interval_ms = 100, .work_left = true});
  CHECK(tuner.tuning().threads == 4);
  CHECK(tuner.tuning().prefetch_steps == 6);
}

TEST_CASE("tuner: idle threads want more steps ahead, not more threads") {
  LoaderTuner tuner(kLimits);
  run(tuner, 16, {.wait_ms = 50, .interval_ms = 100, .work_left = false});
  CHECK(tuner.tuning().threads == 1);
  CHECK(tuner.tuning().prefetch_steps == 4);
}

TEST_CASE("tuner: steps ahead stay below the memory budget, and shrink when steps get larger") {
  TunerLimits limits = kLimits;
  limits.memory_bytes = 1000;
  LoaderTuner tuner(limits);
  tuner.note_step_bytes(250);
  run(tuner, 200, {.wait_ms = 50, .interval_ms = 100, .work_left = false});
  CHECK(tuner.tuning().prefetch_steps == 4);
  tuner.note_step_bytes(500);
  CHECK(tuner.tuning().prefetch_steps == 2);
  tuner.note_step_bytes(4000);
  CHECK(tuner.tuning().prefetch_steps == 1);
}

TEST_CASE("tuner: limits of 0 leave it as it began") {
  LoaderTuner tuner({.threads = 3, .prefetch_steps = 5});
  run(tuner, 100, {.wait_ms = 50, .interval_ms = 100, .work_left = true});
  CHECK(tuner.tuning().threads == 3);
  CHECK(tuner.tuning().prefetch_steps == 5);
}
