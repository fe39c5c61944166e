#include "lib/data/pixel_pool.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <vector>

#include "lib/data/pixel_memory.h"

using namespace mm::data;

namespace {

/// Counts what the pool takes and gives back.
class Counting final : public std::pmr::memory_resource {
 public:
  int taken = 0, held = 0;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    ++taken, ++held;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, size_t bytes, size_t alignment) override {
    --held;
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

TEST_CASE("pixel pool: a block that came back is given again, on a page's edge") {
  Counting upstream;
  PixelPool pool(&upstream);
  void* const first = pool.allocate(300'000);
  CHECK(reinterpret_cast<uintptr_t>(first) % 4096 == 0);
  pool.deallocate(first, 300'000);
  CHECK(pool.allocate(299'000) == first);  // the same size, rounded
  CHECK(upstream.taken == 1);
  void* const other = pool.allocate(900'000);
  CHECK(upstream.taken == 2);
  pool.deallocate(other, 900'000);
  pool.deallocate(first, 299'000);
  CHECK(pool.used_bytes() == 0);
}

TEST_CASE("pixel pool: what waits is never more than what was in use at once") {
  Counting upstream;
  {
    PixelPool pool(&upstream);
    for (size_t kib = 64; kib <= 4096; kib += 16) {
      void* const block = pool.allocate(kib << 10);
      CHECK(pool.used_bytes() >= kib << 10);
      CHECK(pool.used_bytes() <= (kib << 10) * 9 / 8);
      pool.deallocate(block, kib << 10);
      CHECK(pool.waiting_bytes() <= (kib << 10) * 9 / 8);
    }
    CHECK(upstream.held > 0);
  }
  CHECK(upstream.held == 0);
}

TEST_CASE("pixel pool: small blocks pass through, nothing waits") {
  Counting upstream;
  PixelPool pool(&upstream);
  for (int i = 0; i < 3; ++i) pool.deallocate(pool.allocate(1000), 1000);
  CHECK(upstream.taken == 3);
  CHECK(pool.waiting_bytes() == 0);
}

TEST_CASE("pixel pool: pixels that outlive everything else keep their pool") {
  Counting upstream;
  {
    PixelVector pixels;
    {
      const std::shared_ptr<std::pmr::memory_resource> pool =
          std::make_shared<PixelPool>(&upstream);
      PixelVector filled{PixelAllocator<uint8_t>(pool)};
      filled.resize(100'000);
      filled.back() = 7;
      pixels = std::move(filled);
    }
    CHECK(pixels.back() == 7);
    CHECK(upstream.held == 1);
  }
  CHECK(upstream.held == 0);
}

TEST_CASE("pixel pool: many threads share it") {
  PixelPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (size_t i = 0; i < 200; ++i) {
        const size_t bytes = (64 + 8 * ((i + static_cast<size_t>(t)) % 5)) << 10;
        auto* const block = static_cast<char*>(pool.allocate(bytes));
        block[0] = block[bytes - 1] = 1;
        pool.deallocate(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pool.used_bytes() == 0);
}
