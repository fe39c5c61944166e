#include "lib/data/cache_directory.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// Puts a file of `bytes` into the cache as a process that needs it at `next_use`.
bool put(CacheDirectory& cache, const std::string& name, uint64_t bytes, NextUse next_use) {
  const auto part = cache.reserve(name, bytes, next_use);
  if (!part) return false;
  CHECK(fs::file_size(*part) == bytes);
  cache.commit(*part, name);
  return true;
}

size_t count(const fs::path& directory) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator{}));
}

}  // namespace

TEST_CASE(
    "cache directory: what is needed last goes first, nothing goes for what is needed later") {
  const TempDir dir;
  CacheDirectory cache(dir / "c", 300);
  cache.set_needs({{"soon", 5}, {"late", 90}, {"middle", 40}, {"next", 50}, {"far", 95}});
  CHECK(put(cache, "soon", 100, 5));
  CHECK(put(cache, "late", 100, 90));
  CHECK(put(cache, "middle", 100, 40));
  CHECK(cache.used_bytes() == 300);
  CHECK(!cache.reserve("far", 100, 95));
  CHECK(put(cache, "next", 100, 50));
  CHECK(!cache.find("late"));
  CHECK(cache.find("soon"));
  CHECK(cache.find("middle"));
  CHECK(!cache.reserve("huge", 301, 0));
  CHECK(!cache.reserve("soon", 100, 5));  // is there
  CHECK(cache.used_bytes() == 300);
}

TEST_CASE("cache directory: what nobody needs goes before all else, other processes' needs count") {
  const TempDir dir;
  CacheDirectory one(dir / "c", 300), two(dir / "c", 300);
  one.set_needs({{"a", 10}, {"new", 60}});
  two.set_needs({{"b", 20}, {"a", 900}});
  for (const char* name : {"a", "b", "stale"}) CHECK(put(one, name, 100, 0));
  CHECK(put(one, "new", 100, 60));
  CHECK(!one.find("stale"));
  CHECK(two.find("a"));
  CHECK(two.find("b"));
  CHECK(!one.reserve("later", 100, 61));
}

TEST_CASE("cache directory: one process fetches a file, parts count in the budget") {
  const TempDir dir;
  CacheDirectory one(dir / "c", 200), two(dir / "c", 200);
  const auto part = one.reserve("a", 150, 1);
  REQUIRE(part);
  CHECK(!two.reserve("a", 150, 1));
  CHECK(!two.reserve("b", 100, 0));
  CHECK(two.used_bytes() == 150);
  one.abandon(*part);
  CHECK(put(two, "b", 100, 0));
}

TEST_CASE("cache directory: strangers' files are neither taken over nor deleted") {
  const TempDir dir;
  fs::create_directories(dir / "mine");
  mm::write_file_atomic(dir / "mine/thesis.tex", "years of work");
  CHECK_THROWS_WITH_AS(CacheDirectory(dir / "mine", 100), doctest::Contains("not empty"),
                       mm::UsageError);
  CHECK_THROWS_AS(CacheDirectory(dir / "c", 0), mm::UsageError);
  CacheDirectory cache(dir / "c", 100);
  mm::write_file_atomic(dir / "c/notes.txt", "beside");
  CHECK(put(cache, "a", 100, 5));
  CHECK(put(cache, "b", 100, 1));
  CHECK(mm::read_file(dir / "c/notes.txt") == "beside");
  CHECK(mm::read_file(dir / "mine/thesis.tex") == "years of work");
  CHECK(count(dir / "mine") == 1);
  mm::write_file_atomic(dir / "c/mmkit-cache.json", R"({"format":"mmkit-cache","version":2})");
  CHECK_THROWS_WITH_AS(CacheDirectory(dir / "c", 100), doctest::Contains("another version"),
                       mm::UsageError);
}

TEST_CASE("cache directory: killed at any point, the next process finds whole files and no parts") {
  for (int nth = 0;; ++nth) {
    const TempDir dir;
    {
      CacheDirectory cache(dir / "c", 200);
      CHECK(put(cache, "old", 100, 50));
      CHECK(put(cache, "older", 100, 60));
    }
    const pid_t child = fork();
    if (child == 0) {
      int left = nth;
      CacheDirectory cache(dir / "c", 200, [&](std::string_view) {
        if (left-- == 0) _exit(9);  // nothing is flushed or removed, as by a kill
      });
      const auto part = cache.reserve("new", 150, 1);
      if (part) cache.commit(*part, "new");
      _exit(part ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK((WEXITSTATUS(status) == 9 || WEXITSTATUS(status) == 0));
    CacheDirectory next(dir / "c", 200);
    CHECK(next.used_bytes() <= 200);
    CHECK(count(dir / "c/parts") == 0);
    CHECK(count(dir / "c/procs") == 1);
    if (const auto path = next.find("new")) {
      CHECK(fs::file_size(*path) == 150);
    } else {
      CHECK(put(next, "new", 150, 1));
    }
    CHECK(next.used_bytes() <= 200);
    if (WEXITSTATUS(status) == 0) {
      CHECK(nth >= 7);
      break;
    }
  }
}

TEST_CASE("cache directory: many processes at once never exceed the budget") {
  const TempDir dir;
  std::vector<std::unique_ptr<CacheDirectory>> caches;
  for (int i = 0; i < 4; ++i) caches.push_back(std::make_unique<CacheDirectory>(dir / "c", 1000));
  std::atomic<uint64_t> most = 0;
  mm::parallel_for(4, 4, [&](size_t i) {
    for (uint64_t k = 0; k < 60; ++k) {
      const std::string name = fmt::format("f{}", (7 * k + 3 * i) % 31);
      if (const auto part = caches[i]->reserve(name, 90 + k, k)) caches[i]->commit(*part, name);
      uint64_t now = 0;
      try {
        now = caches[i]->used_bytes();
      } catch (const fs::filesystem_error&) {
        continue;
      }
      uint64_t seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
    }
  });
  CHECK(caches[0]->used_bytes() <= 1000);
}

TEST_CASE("cache directory: processes that make it at the same moment all take it") {
  const TempDir dir;
  for (int round = 0; round < 40; ++round) {
    const fs::path root = dir / ("c" + std::to_string(round));
    std::array<pid_t, 4> children{};
    for (pid_t& child : children) {
      child = fork();
      if (child != 0) continue;
      try {
        const CacheDirectory cache(root, 300);
        _exit(0);
      } catch (const mm::Error&) {
        _exit(1);
      }
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      CHECK(WEXITSTATUS(status) == 0);
    }
  }
}
