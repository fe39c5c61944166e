#include "lib/base/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

#include "lib/base/error.h"

TEST_CASE("parallel_for: every index once, for 0, 1, 3 and all threads") {
  for (const int threads : {0, 1, 3, 50}) {
    std::vector<std::atomic<int>> hits(101);
    mm::parallel_for(hits.size(), threads, [&](size_t i) { ++hits[i]; });
    for (const auto& count : hits) REQUIRE(count == 1);
  }
  mm::parallel_for(0, 4, [](size_t) { FAIL("no index to run"); });
}

TEST_CASE("parallel_for: the first exception stops the rest and comes back") {
  for (const int threads : {1, 4}) {
    std::atomic<int> ran{0};
    CHECK_THROWS_AS(mm::parallel_for(1'000'000, threads,
                                     [&](size_t i) {
                                       ++ran;
                                       if (i == 10) throw mm::DataError("sample {}", i);
                                     }),
                    mm::DataError);
    CHECK(ran < 1'000'000);
  }
}

TEST_CASE("usable_cores: at least one") { CHECK(mm::usable_cores() >= 1); }
