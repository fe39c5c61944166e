#pragma once
#include <cstddef>
#include <cstdint>

namespace mm::data {

/// What a loader has settled on.
struct LoaderTuning {
  int threads = 0, prefetch_steps = 0;
  uint64_t step_bytes = 0;  ///< of the largest step of this rank so far
};

struct TunerLimits {
  int threads = 1, prefetch_steps = 1;          ///< to begin with
  int max_threads = 0, max_prefetch_steps = 0;  ///< 0: stay
  uint64_t memory_bytes = 0;                    ///< of steps ahead; 0: no limit
};

/// One call of the loader's `next`, as measured.
struct LoaderMoment {
  double wait_ms = 0;      ///< for data
  double interval_ms = 0;  ///< since the call before it
  bool work_left = false;  ///< reading threads had more to do than they could: all were busy
};

/// Decides how many threads read and how many steps are kept ahead, from what was waited. Eight
/// steps are judged together: when in half of them more than 2 % of the time was waiting, it takes
/// a thread more while threads are the bottleneck, else a step more. Never shrinks, but for memory:
/// steps ahead times the largest step stay below `memory_bytes`, one step ahead at least. Not
/// thread-safe; a pure function of its calls.
class LoaderTuner {
 public:
  explicit LoaderTuner(const TunerLimits& limits);
  void note_step_bytes(uint64_t bytes);
  void note(const LoaderMoment& moment);
  const LoaderTuning& tuning() const { return tuning_; }

 private:
  int cap_by_memory(int steps) const;
  const TunerLimits limits_;
  LoaderTuning tuning_;
  int wanted_steps_;
  int waits_ = 0, busy_ = 0, moments_ = 0;
};

}  // namespace mm::data
