#include "lib/ckpt/find.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

void halve(const std::filesystem::path& file) {
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
}

// C44's folders: 100 whole, 200 with a shard cut to half, 300 without the completion mark, 400 with
// an empty index file.
void make_c44_folders(const std::filesystem::path& dir) {
  save_two_ranks(dir, 100);
  halve(save_two_ranks(dir, 200) / shard_name(1));
  std::filesystem::remove(save_two_ranks(dir, 300) / kCommitName);
  std::filesystem::resize_file(save_two_ranks(dir, 400) / kManifestName, 0);
}

size_t entries(const std::filesystem::path& dir) {
  const std::filesystem::recursive_directory_iterator begin(dir), end;
  return static_cast<size_t>(std::distance(begin, end));
}

}  // namespace

TEST_CASE(
    "C44: the newest whole folder is taken, each newer one is named with its reason, none is "
    "deleted") {
  const TempDir dir;
  make_c44_folders(dir.path());
  const size_t before = entries(dir.path());
  for (const VerifyDepth depth : {VerifyDepth::kStructure, VerifyDepth::kChecksums}) {
    const FoundCheckpoint found = find_newest(dir.path(), {.depth = depth});
    CHECK(found.path == dir / "step-00000100");
    CHECK(found.manifest.step == 100);
    REQUIRE(found.passed_over.size() == 3);
    CHECK(found.passed_over[0].path == dir / "step-00000400");
    CHECK(found.passed_over[0].reason ==
          (dir / "step-00000400/manifest.json").string() + ": the file is empty");
    CHECK(found.passed_over[1].path == dir / "step-00000300");
    CHECK(found.passed_over[1].reason.ends_with("no COMMIT: the save was not finished"));
    CHECK(found.passed_over[2].path == dir / "step-00000200");
    CHECK(found.passed_over[2].reason.find("shard-rank-00001.safetensors: truncated by") !=
          std::string::npos);
  }
  CHECK(entries(dir.path()) == before);
}

TEST_CASE("C44: with only broken folders there is an error that names them, never a fresh start") {
  const TempDir dir;
  make_c44_folders(dir.path());
  halve(dir.path() / "step-00000100" / kManifestName);
  CHECK_THROWS_WITH_AS(find_newest(dir.path()), doctest::Contains("no checkpoint is whole"),
                       mm::DataError);
  CHECK_THROWS_WITH_AS(find_newest(dir.path()), doctest::Contains("step-00000100"), mm::DataError);
  CHECK(std::filesystem::exists(dir / "step-00000100"));
}

TEST_CASE("find: a run without checkpoints starts afresh, other names are not looked at") {
  const TempDir dir;
  CHECK_FALSE(find_newest(dir / "absent").found());
  CHECK_FALSE(find_newest(dir.path()).found());
  for (const char* name :
       {"step-12", "step-", "step-00000001x", "best", "step-99999999999999999999999"}) {
    std::filesystem::create_directory(dir / name);
  }
  mm::write_file_atomic(dir / "step-00000007", "a file");
  CHECK_FALSE(find_newest(dir.path()).found());
}

TEST_CASE("find: steps order by number, beyond eight digits too") {
  const TempDir dir;
  save_two_ranks(dir.path(), 99'999'999);
  const auto path = save_two_ranks(dir.path(), 100'000'000);
  CHECK(find_newest(dir.path()).path == path);
}

TEST_CASE("find: a bit flip in the newest one's data leads to the older one") {
  const TempDir dir;
  save_two_ranks(dir.path(), 1);
  const auto shard = save_two_ranks(dir.path(), 2) / shard_name(0);
  std::string bytes = mm::read_file(shard);
  bytes[bytes.size() / 2] ^= 4;
  mm::write_file_atomic(shard, bytes);
  const FoundCheckpoint found = find_newest(dir.path());
  CHECK(found.manifest.step == 1);
  CHECK(found.passed_over.at(0).reason.find("crc32c") != std::string::npos);
}
