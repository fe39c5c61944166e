#pragma once
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace mm::step::test {

/// Counts bytes that this thread's tensors take from LibTorch's CPU allocator while it lives.
class LiveBytes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device) override {
    live += alloc_size;
    peak = std::max(peak, live);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t live = 0, peak = 0;
};

/// Peak of `work` above what was live before it, in bytes.
template <typename F>
int64_t peak_of(F&& work) {
  auto counter = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return counter->peak;
}

}  // namespace mm::step::test
