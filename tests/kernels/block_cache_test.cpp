#include "kernels/block_cache.h"

#include <doctest/doctest.h>

#include <cstring>
#include <new>
#include <thread>

using mm::kernels::BlockCache;

TEST_CASE("BlockCache: blocks are aligned, large enough and may be written whole") {
  BlockCache cache(64 << 20);
  for (const size_t bytes : {1UL, 64UL, 255UL, 257UL, 4097UL, 1000000UL, 5000000UL}) {
    void* block = cache.allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
    std::memset(block, 1, bytes);
    cache.release(block);
  }
  CHECK(cache.allocate(0) == nullptr);
  cache.release(nullptr);
  CHECK(cache.counts().live_bytes == 0);
}

TEST_CASE(
    "BlockCache: a freed block serves the next request of its size, or one a little smaller") {
  BlockCache cache(64 << 20);
  void* first = cache.allocate(1 << 20);
  cache.release(first);
  CHECK(cache.allocate(1 << 20) == first);
  cache.release(first);
  CHECK(cache.allocate((1 << 20) * 7 / 8) == first);
  cache.release(first);
  // Not one half as large: that would waste the rest.
  void* small = cache.allocate(1 << 19);
  CHECK(small != first);
  cache.release(small);
  CHECK(cache.counts().reused == 2);
  CHECK(cache.counts().requests == 4);
}

TEST_CASE("BlockCache: live and peak bytes follow requests, rounded up by at most an eighth") {
  BlockCache cache(64 << 20);
  void *a = cache.allocate(3000000), *b = cache.allocate(1000000);
  const auto both = cache.counts();
  CHECK(both.live_bytes >= 4000000);
  CHECK(both.live_bytes <= 4000000 * 9 / 8);
  cache.release(a);
  CHECK(cache.counts().peak_live_bytes == both.live_bytes);
  CHECK(cache.counts().live_bytes < both.live_bytes);
  cache.reset_peak();
  CHECK(cache.counts().peak_live_bytes == cache.counts().live_bytes);
  cache.release(b);
}

TEST_CASE("BlockCache: idle bytes stay below the cap, and trim gives all back") {
  BlockCache cache(3 << 20);
  void *a = cache.allocate(2 << 20), *b = cache.allocate(2 << 20);
  cache.release(a);
  cache.release(b);
  CHECK(cache.counts().idle_bytes == 2 << 20);
  cache.trim();
  CHECK(cache.counts().idle_bytes == 0);
}

TEST_CASE(
    "BlockCache: a request that no machine can serve is std::bad_alloc, and the cache lives on") {
  BlockCache cache(1 << 20);
  CHECK_THROWS_AS((void)cache.allocate(SIZE_MAX / 2), std::bad_alloc);
  void* block = cache.allocate(100);
  CHECK(block != nullptr);
  cache.release(block);
}

TEST_CASE("BlockCache: threads share it, each finding its own bytes unchanged") {
  BlockCache cache(8 << 20);
  const auto work = [&](unsigned char mark) {
    for (int round = 0; round < 200; ++round) {
      const size_t bytes = 1000 + static_cast<size_t>(round) * 37;
      auto* block = static_cast<unsigned char*>(cache.allocate(bytes));
      std::memset(block, mark, bytes);
      if (block[0] != mark || block[bytes - 1] != mark) throw std::bad_alloc();
      cache.release(block);
    }
  };
  std::thread other(work, 1);
  work(2);
  other.join();
  CHECK(cache.counts().live_bytes == 0);
  CHECK(cache.counts().requests == 400);
}

TEST_CASE("BlockCache: live and idle bytes stay within an eighth of the most that was live") {
  BlockCache cache(1 << 30);
  void* small = cache.allocate(8 << 20);
  cache.release(small);
  // No idle block fits, and the idle one would be on top of the new peak.
  void* large = cache.allocate(20 << 20);
  CHECK(cache.counts().idle_bytes == 0);
  CHECK(cache.counts().live_bytes == 20 << 20);
  cache.release(large);
  CHECK(cache.counts().idle_bytes == 20 << 20);
}

TEST_CASE("BlockCache: a large process keeps at most 64 MiB of idle blocks above its peak") {
  BlockCache cache(size_t{2} << 30);
  // Address space alone: nothing is written.
  void *small = cache.allocate(100 << 20), *large = cache.allocate(size_t{1} << 30);
  cache.release(small);
  cache.release(large);
  void* larger = cache.allocate(size_t{9} << 27);
  CHECK(cache.counts().live_bytes == int64_t{9} << 27);
  CHECK(cache.counts().idle_bytes <= 64 << 20);
  cache.release(larger);
}
