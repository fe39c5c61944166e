#include "lib/data/loader_tuner.h"

#include <algorithm>

namespace mm::data {
namespace {

constexpr double kWaitShare = 0.02;
constexpr int kWindow = 8;  // steps that are judged together
constexpr int kWaitsThatCount = 4;

}  // namespace

LoaderTuner::LoaderTuner(const TunerLimits& limits)
    : limits_(limits),
      tuning_{limits.threads, limits.prefetch_steps, 0},
      wanted_steps_(limits.prefetch_steps) {}

int LoaderTuner::cap_by_memory(int steps) const {
  if (limits_.memory_bytes == 0 || tuning_.step_bytes == 0) return steps;
  const uint64_t fit = limits_.memory_bytes / tuning_.step_bytes;
  return static_cast<int>(std::clamp<uint64_t>(fit, 1, static_cast<uint64_t>(steps)));
}

void LoaderTuner::note_step_bytes(uint64_t bytes) {
  tuning_.step_bytes = std::max(tuning_.step_bytes, bytes);
  tuning_.prefetch_steps = cap_by_memory(wanted_steps_);
}

void LoaderTuner::note(const LoaderMoment& moment) {
  const bool waited = moment.wait_ms > kWaitShare * moment.interval_ms;
  waits_ += waited;
  busy_ += waited && moment.work_left;
  if (++moments_ < kWindow) return;
  if (waits_ >= kWaitsThatCount) {
    const bool threads_short = 2 * busy_ >= waits_;
    if (threads_short && tuning_.threads < limits_.max_threads) {
      ++tuning_.threads;
    } else if (wanted_steps_ < limits_.max_prefetch_steps) {
      ++wanted_steps_;
    }
    tuning_.prefetch_steps = cap_by_memory(wanted_steps_);
  }
  moments_ = waits_ = busy_ = 0;
}

}  // namespace mm::data
