#include "lib/ckpt/layout.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/ckpt/raw_safetensors.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;

TEST_CASE("layout: directory names and back") {
  CHECK(step_directory_name(1200) == "step-00001200");
  CHECK(step_directory_name(1234567890) == "step-1234567890");
  CHECK(shard_name(7) == "shard-rank-00007.safetensors");
  const auto plain = parse_step_directory("step-00001200");
  REQUIRE(plain);
  CHECK(plain->step == 1200);
  CHECK_FALSE(plain->temporary);
  CHECK_FALSE(plain->replaced);
  CHECK(parse_step_directory("step-00000001.tmp-ab")->temporary);
  CHECK(parse_step_directory("step-00000001.replaced-ab")->replaced);
  for (const char* other : {"", "step-", "step-1", "step-0000000x", "step-00000001~",
                            "step-00000001.bak", "stage-00000001", "step--0000001"}) {
    CAPTURE(other);
    CHECK_FALSE(parse_step_directory(other));
  }
}

TEST_CASE("layout: a manifest counts with its own COMMIT only, byte for byte") {
  const mm::ckpt::test::TempDir dir;
  const auto path = mm::ckpt::test::save_two_ranks(dir.path(), 9);
  const std::string commit = mm::read_file(path / kCommitName);
  CHECK(commit == commit_text(read_committed_manifest(path), mm::read_file(path / kManifestName)));
  for (const std::string& other :
       {std::string(), commit + " ", commit.substr(1), std::string(10'000, 'x')}) {
    mm::ckpt::test::write_raw(path / kCommitName, other);
    CHECK_THROWS_AS(read_committed_manifest(path), mm::DataError);
  }
  std::filesystem::rename(path / kCommitName, path / kDeletedName);
  CHECK_THROWS_WITH_AS(read_committed_manifest(path),
                       doctest::Contains("its deletion was begun by retention"), mm::DataError);
}
