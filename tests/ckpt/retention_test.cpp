#include "lib/ckpt/retention.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/base/file.h"
#include "lib/ckpt/find.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

std::set<uint64_t> committed_steps(const std::filesystem::path& dir) {
  std::set<uint64_t> steps;
  for (const auto& one : list_checkpoints(dir)) {
    if (one.committed) steps.insert(one.kind.step);
  }
  return steps;
}

}  // namespace

TEST_CASE("retention: the newest stay, every n-th stays, the rest goes oldest first") {
  const TempDir dir;
  for (uint64_t step = 1; step <= 7; ++step) save_two_ranks(dir.path(), step);
  const RetentionResult result = apply_retention(dir.path(), {.keep_last = 2, .keep_every = 3});
  CHECK(committed_steps(dir.path()) == std::set<uint64_t>{3, 6, 7});
  REQUIRE(result.deleted.size() == 4);
  CHECK(result.deleted.front() == dir / "step-00000001");
  CHECK(result.held_back.empty());
}

TEST_CASE("retention: never fewer than two committed checkpoints stay") {
  const TempDir dir;
  for (const uint64_t step : {1, 2, 3}) save_two_ranks(dir.path(), step);
  apply_retention(dir.path(), {.keep_last = 0});
  CHECK(committed_steps(dir.path()) == std::set<uint64_t>{2, 3});
}

TEST_CASE("retention: nothing is deleted while the newest does not verify") {
  const TempDir dir;
  for (const uint64_t step : {1, 2, 3}) save_two_ranks(dir.path(), step);
  const auto shard = dir.path() / "step-00000003" / shard_name(1);
  std::string bytes = mm::read_file(shard);
  bytes.back() ^= 1;
  mm::write_file_atomic(shard, bytes);
  const RetentionResult result = apply_retention(dir.path(), {.keep_last = 2});
  CHECK(result.deleted.empty());
  CHECK(result.held_back.find("crc32c") != std::string::npos);
  CHECK(committed_steps(dir.path()) == std::set<uint64_t>{1, 2, 3});
}

TEST_CASE("retention: broken and temporary directories stay, half-deleted ones go") {
  const TempDir dir;
  for (const uint64_t step : {1, 2, 3, 4}) save_two_ranks(dir.path(), step);
  std::filesystem::remove(dir.path() / "step-00000001" / kCommitName);
  std::filesystem::rename(dir.path() / "step-00000002" / kCommitName,
                          dir.path() / "step-00000002" / kDeletedName);
  std::filesystem::create_directory(dir / "step-00000005.tmp-abc");
  apply_retention(dir.path(), {});
  CHECK(std::filesystem::exists(dir / "step-00000001"));
  CHECK_FALSE(std::filesystem::exists(dir / "step-00000002"));
  CHECK(std::filesystem::exists(dir / "step-00000005.tmp-abc"));
}

TEST_CASE(
    "retention: a save that was replaced by one of the same step goes once the new one is whole") {
  const TempDir dir;
  save_two_ranks(dir.path(), 1);
  save_two_ranks(dir.path(), 2);
  save_two_ranks(dir.path(), 2);
  CHECK(list_checkpoints(dir.path()).size() == 3);
  apply_retention(dir.path(), {});
  CHECK(list_checkpoints(dir.path()).size() == 2);
  CHECK(committed_steps(dir.path()) == std::set<uint64_t>{1, 2});
}
