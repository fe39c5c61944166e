#include "lib/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mm {

int usable_cores() {
  // 8192 CPUs; the plain cpu_set_t fails with EINVAL on kernels built for more than 1024.
  constexpr int kMaxCpus = 8192;
  std::vector<cpu_set_t> mask(kMaxCpus / CPU_SETSIZE);
  const size_t bytes = mask.size() * sizeof(cpu_set_t);
  if (::sched_getaffinity(0, bytes, mask.data()) != 0) {
    return std::max(1u, std::thread::hardware_concurrency());
  }
  return std::max(1, CPU_COUNT_S(bytes, mask.data()));
}

void parallel_for(size_t count, int threads, const std::function<void(size_t)>& body) {
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : usable_cores();
  const size_t workers = std::min(wanted, count);
  if (workers <= 1) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::exception_ptr first;
  const auto work = [&] {
    while (!stop) {
      const size_t i = next++;
      if (i >= count) return;
      try {
        body(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!first) first = std::current_exception();
        stop = true;
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (size_t i = 1; i < workers; ++i) pool.emplace_back(work);
    work();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace mm
