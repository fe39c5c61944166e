#include "lib/data/node_cache.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/data/loader.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

constexpr double kDeadlineS = 30;

uint64_t largest_shard(const fs::path& set) {
  uint64_t bytes = 0;
  for (const ShardEntry& shard : read_manifest(set).shards)
    bytes = std::max(bytes, shard.file.bytes);
  return bytes;
}

uint64_t all_shards(const fs::path& set) {
  uint64_t bytes = 0;
  for (const ShardEntry& shard : read_manifest(set).shards) bytes += shard.file.bytes;
  return bytes;
}

uint64_t bytes_below(const fs::path& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::error_code error;
    const auto size = fs::file_size(entry.path(), error);
    if (!error) bytes += size;
  }
  return bytes;
}

std::vector<std::string> cached(const fs::path& cache) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cache / "files"))
    names.push_back(entry.path().filename().string().substr(17));
  std::sort(names.begin(), names.end());
  return names;
}

/// Ids and pixels of `steps` steps from `first`.
std::string stream(const SampleStore& store, uint64_t first, int steps) {
  LoaderOptions options;
  options.plan = {
      .seed = 3, .sequence_length = 24, .packs_per_step = 2, .packing = Packing::kShuffled};
  options.start_step = first;
  Loader loader(store, options);
  std::string all;
  for (int i = 0; i < steps; ++i) {
    const LoaderStep step = loader.next();
    CHECK(step.bad.empty());
    for (const MicroBatch& batch : step.micro_batches) {
      for (const uint64_t id : batch.sample_ids) all += std::to_string(id) + " ";
      all.append(batch.pixels.begin(), batch.pixels.end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("node cache: the next needed shards are there, the last needed go when it moves on") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 40);
  const auto set = Dataset::open(dir / "set");
  const uint64_t room = 2 * largest_shard(dir / "set");
  set->use_cache({.tiers = {{dir / "cache", room}}});
  auto& cache = const_cast<NodeCache&>(*set->cache());
  cache.expect(0, {{3}, {1}, {4}, {0}, {2}, {3}});
  REQUIRE(cache.settle(kDeadlineS));
  CHECK(cached(dir / "cache") == std::vector<std::string>{"shard-00001.mms", "shard-00003.mms"});
  cache.reached(1);
  REQUIRE(cache.settle(kDeadlineS));
  // Shard 3 is needed again, but last of all.
  CHECK(cached(dir / "cache") == std::vector<std::string>{"shard-00001.mms", "shard-00004.mms"});
  cache.reached(4);
  REQUIRE(cache.settle(kDeadlineS));
  CHECK(cached(dir / "cache") == std::vector<std::string>{"shard-00002.mms", "shard-00003.mms"});
}

TEST_CASE("node cache: what the loader gives does not depend on it, and it stays in its budget") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 60);
  const std::string plain = stream(*Dataset::open(dir / "set"), 0, 40);
  for (const uint64_t shards : {1, 3, 100}) {
    const auto set = Dataset::open(dir / "set");
    const fs::path place = dir / fmt::format("cache {}", shards);
    set->use_cache({.tiers = {{place, shards * largest_shard(dir / "set")}}});
    CHECK(stream(*set, 0, 40) == plain);
    CHECK(bytes_below(place / "files") <= shards * largest_shard(dir / "set"));
    CHECK(set->cache()->counts().hits + set->cache()->counts().misses > 0);
  }
}

TEST_CASE("node cache: memory over disk over store, each with its own budget") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 40);
  const auto set = Dataset::open(dir / "set");
  const uint64_t one = largest_shard(dir / "set");
  set->use_cache({.tiers = {{dir / "memory", one}, {dir / "disk", 3 * one}}});
  auto& cache = const_cast<NodeCache&>(*set->cache());
  cache.expect(0, {{2}, {0}, {4}, {1}});
  REQUIRE(cache.settle(kDeadlineS));
  CHECK(cached(dir / "memory") == std::vector<std::string>{"shard-00002.mms"});
  CHECK(cached(dir / "disk") ==
        std::vector<std::string>{"shard-00000.mms", "shard-00002.mms", "shard-00004.mms"});
  REQUIRE(cache.find(2));
  CHECK(cache.find(2)->size_bytes() == set->manifest().shards[2].file.bytes);
  CHECK(!cache.find(3));
}

TEST_CASE(
    "node cache: a damaged copy is dropped and read from the store; a bad shard never cached") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 24);
  const auto set = Dataset::open(dir / "set");
  set->use_cache({.tiers = {{dir / "cache", all_shards(dir / "set")}}});
  auto& cache = const_cast<NodeCache&>(*set->cache());
  cache.expect(0, {{0, 1}});
  REQUIRE(cache.settle(kDeadlineS));
  for (const auto& entry : fs::directory_iterator(dir / "cache/files")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path()) - 1));
    file.put('\x7f');
  }
  for (uint64_t row = 0; row < 24; ++row) CHECK(set->read(row).ok());
  CHECK(cache.counts().damaged == 2);

  std::fstream shard(dir / "set/shard-00002.mms", std::ios::in | std::ios::out);
  shard.seekp(100);
  shard.put('\x7f');
  shard.close();
  cache.expect(0, {{2}});
  REQUIRE(cache.settle(kDeadlineS));
  CHECK(!cache.find(2));
  CHECK(bytes_below(dir / "cache/parts") == 0);
}

TEST_CASE("node cache: refused before the run when it cannot hold one shard") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 20);
  CHECK_THROWS_WITH_AS(Dataset::open(dir / "set")->use_cache({.tiers = {{dir / "cache", 100}}}),
                       doctest::Contains("cannot hold the largest shard"), mm::UsageError);
}

TEST_CASE("node cache: killed at any block, byte for byte the same data come after it") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 40);
  const std::string expected = stream(*Dataset::open(dir / "set"), 0, 12);
  const uint64_t room = 2 * largest_shard(dir / "set");
  const char* more = std::getenv("MM_LONG");
  const bool all_points = more != nullptr && *more == '1';
  int killed = 0;
  for (int nth = 0; nth < 100; nth += all_points ? 1 : 9) {
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> left = nth;
      const auto set = Dataset::open(dir / "set");
      set->use_cache(
          {.tiers = {{dir / "cache", room}}, .block_bytes = 64, .fault = [&](std::string_view) {
             if (left-- == 0) kill(getpid(), SIGKILL);
           }});
      set->expect(0, {{0}, {1}, {2}, {3}, {4}});
      auto& cache = const_cast<NodeCache&>(*set->cache());
      for (uint64_t step = 0; step < 5; ++step) {
        cache.reached(step);
        if (!cache.settle(kDeadlineS)) _exit(1);
      }
      _exit(stream(*set, 0, 12) == expected ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
    CHECK(bytes_below(dir / "cache/files") + bytes_below(dir / "cache/parts") <= room);
  }
  CHECK(killed > 3);
  const auto set = Dataset::open(dir / "set");
  set->use_cache({.tiers = {{dir / "cache", room}}});
  CHECK(stream(*set, 0, 12) == expected);
  CHECK(set->cache()->counts().damaged == 0);
  CHECK(bytes_below(dir / "cache/parts") == 0);
}

TEST_CASE("node cache: processes of a node share one budget") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 40);
  const std::string expected = stream(*Dataset::open(dir / "set"), 0, 30);
  const uint64_t room = 3 * largest_shard(dir / "set");
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const auto set = Dataset::open(dir / "set");
    set->use_cache({.tiers = {{dir / "cache", room}}});
    _exit(stream(*set, 0, 30) == expected ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(bytes_below(dir / "cache/files") <= room);
  CHECK(bytes_below(dir / "cache/parts") == 0);
}
