// The processor and memory tests behind `--full`.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/health/full_tests.h"

namespace mm::health {
namespace {

constexpr int kSide = 256;
constexpr int kTile = 64;

// The index-th core that we may use; without permission the thread stays where it is.
void stay_on_core(int index) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    CPU_SET(cpu, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof(one), &one);
    return;
  }
}

// c += a * b, all [kSide, kSide]. The order of every sum is fixed, so the bits are too; compilers
// that fuse multiply and add do so on all cores alike.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void multiply(const float* a, const float* b, float* c) {
  for (int i0 = 0; i0 < kSide; i0 += kTile) {
    for (int k0 = 0; k0 < kSide; k0 += kTile) {
      for (int i = i0; i < i0 + kTile; ++i) {
        for (int k = k0; k < k0 + kTile; ++k) {
          const float x = a[i * kSide + k];
          const float* row = b + k * kSide;
          float* out = c + i * kSide;
          for (int j = 0; j < kSide; ++j) out[j] += x * row[j];
        }
      }
    }
  }
}

std::vector<float> numbers(uint32_t seed) {
  std::vector<float> values(size_t{kSide} * kSide);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) / float(1 << 24) - 0.5F;
  }
  return values;
}

uint64_t hash_of(const std::vector<float>& values) {
  return xxh3_64(std::as_bytes(std::span(values)));
}

// One pass of a pattern over a part of the memory: write all, then read all.
uint64_t pass(std::span<uint64_t> words, uint64_t pattern, bool by_address) {
  const auto value = [&](size_t i) {
    return by_address ? pattern ^ (i * 0x9E3779B97F4A7C15ULL) : pattern;
  };
  volatile uint64_t* memory = words.data();
  for (size_t i = 0; i < words.size(); ++i) memory[i] = value(i);
  // The caches must not answer for the memory.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  uint64_t wrong = 0;
  for (size_t i = 0; i < words.size(); ++i) wrong += memory[i] != value(i) ? 1 : 0;
  return wrong;
}

}  // namespace

GemmResult run_gemm(int core, double seconds) {
  stay_on_core(core);
  const std::vector<float> a = numbers(1), b = numbers(2);
  std::vector<float> c(a.size());
  GemmResult result;
  const double start_s = system_clock().monotonic_s();
  do {
    std::fill(c.begin(), c.end(), 0.0F);
    multiply(a.data(), b.data(), c.data());
    result.flop += 2.0 * kSide * kSide * kSide;
    // Every product must agree, not only the last: a core that errs now and then is sick too.
    const uint64_t hash = hash_of(c);
    if (result.hash != 0 && hash != result.hash) {
      result.hash = ~hash;
      break;
    }
    result.hash = hash;
    result.seconds = system_clock().monotonic_s() - start_s;
  } while (result.seconds < seconds);
  result.seconds = std::max(system_clock().monotonic_s() - start_s, 1e-9);
  return result;
}

double copy_rate(int threads, double seconds) {
  constexpr size_t kBytes = size_t{64} << 20;  // beyond the caches of a core
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      stay_on_core(t);
      std::vector<char> from(kBytes, 1), to(kBytes, 2);
      const double start_s = system_clock().monotonic_s();
      double copied = 0, passed_s = 0;
      do {
        std::memcpy(to.data(), from.data(), kBytes);
        std::swap(to, from);
        copied += 2.0 * kBytes;
        passed_s = system_clock().monotonic_s() - start_s;
      } while (passed_s < seconds);
      rates[static_cast<size_t>(t)] = 1e-9 * copied / passed_s;
    });
  }
  for (std::thread& worker : workers) worker.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

uint64_t test_memory(uint64_t bytes, int threads) {
  const size_t words = static_cast<size_t>(bytes / sizeof(uint64_t));
  std::unique_ptr<uint64_t[]> memory(new (std::nothrow) uint64_t[words]);
  if (!memory) throw IoError("no {} MiB of memory to test", bytes >> 20);
  std::vector<uint64_t> wrong(static_cast<size_t>(threads), 0);
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    const size_t begin = words * static_cast<size_t>(t) / static_cast<size_t>(threads);
    const size_t end = words * static_cast<size_t>(t + 1) / static_cast<size_t>(threads);
    workers.emplace_back([&, t, begin, end] {
      const std::span<uint64_t> part(memory.get() + begin, end - begin);
      for (const uint64_t pattern : {0x0ULL, ~0x0ULL, 0x5555555555555555ULL, 0xAAAAAAAAAAAAAAAAULL})
        wrong[static_cast<size_t>(t)] += pass(part, pattern, false);
      wrong[static_cast<size_t>(t)] += pass(part, begin, true);
    });
  }
  for (std::thread& worker : workers) worker.join();
  uint64_t sum = 0;
  for (const uint64_t one : wrong) sum += one;
  return sum;
}

}  // namespace mm::health
