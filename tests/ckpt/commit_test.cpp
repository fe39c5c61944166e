#include "lib/ckpt/commit.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/retention.h"
#include "lib/ckpt/safetensors.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

// Runs a save and retention in a child that kills itself the `nth` time that `point` is passed.
// Returns true if the point was reached.
bool save_and_die(const std::filesystem::path& run_ckpt, uint64_t step, std::string_view point,
                  int nth) {
  const pid_t child = ::fork();
  if (child == 0) {
    int seen = 0;
    const FaultHook hook = [&](std::string_view name) {
      if (name == point && ++seen == nth) ::raise(SIGKILL);
    };
    save_two_ranks(run_ckpt, step, hook);
    apply_retention(run_ckpt, {.keep_last = 2}, hook);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

TEST_CASE("commit: a save of two ranks is found, whole, with its state and boxes") {
  const TempDir dir;
  const auto path = save_two_ranks(dir.path(), 1200);
  CHECK(path.filename() == "step-00001200");
  CHECK(mm::read_file(dir / "latest") == "step-00001200\n");
  const FoundCheckpoint found = find_newest(dir.path());
  REQUIRE(found.found());
  CHECK(found.path == path);
  CHECK(found.passed_over.empty());
  CHECK(found.manifest.step == 1200);
  CHECK(found.manifest.world_size == 2);
  CHECK(found.manifest.state["schedule"]["lr"] == 0.5);
  REQUIRE(found.manifest.tensors.size() == 4);
  const TensorRecord& columns = found.manifest.tensors[1];
  CHECK(columns.name == "columns");
  REQUIRE(columns.pieces.size() == 2);
  CHECK(columns.pieces[1].tensor == "columns@0,3");
  CHECK(columns.pieces[1].box == ElementBox{{0, 3}, {4, 3}});
  const auto shard = SafetensorsFile::open(path / found.manifest.files[1].name);
  CHECK(shard.metadata().at(std::string(kSaveIdKey)) == found.manifest.save_id);
  CHECK(shard.read(shard.at("columns@0,3")) == mm::ckpt::test::filled(48, 3601));
}

TEST_CASE(
    "commit: parts that leave a gap, overlap or disagree are refused and nothing is committed") {
  const TempDir dir;
  const auto bytes = mm::ckpt::test::filled(16, 1);
  const auto try_boxes = [&](std::vector<ElementBox> boxes, std::vector<DType> dtypes,
                             const char* message) {
    const std::string id = new_save_id();
    std::vector<ShardReport> reports;
    for (size_t rank = 0; rank < boxes.size(); ++rank) {
      CheckpointWriter writer({dir.path(), 5, id, "", static_cast<int>(rank), 2});
      writer.begin();
      const std::vector<ShardTensor> tensors = {{"w", dtypes[rank], {8}, boxes[rank], bytes, {}}};
      reports.push_back(writer.write_shard(tensors));
    }
    CheckpointWriter writer({dir.path(), 5, id, "", 0, 2});
    CHECK_THROWS_WITH_AS(writer.commit(reports, {}), doctest::Contains(message), mm::DataError);
    writer.abort();
    CHECK(std::filesystem::is_empty(dir.path()));
  };
  const DType f = DType::kF32, i = DType::kI32;
  try_boxes({{{0}, {4}}}, {f}, "4 of 8 elements are missing");
  try_boxes({{{0}, {4}}, {{2}, {4}}}, {f, f}, "boxes [0:4] and [2:6] overlap");
  try_boxes({{{0}, {4}}, {{4}, {4}}}, {f, i}, "one rank saves F32 [8], another I32 [8]");
  try_boxes({{{0}, {4}}, {{6}, {4}}}, {f, f}, "reaches outside shape [8]");
}

TEST_CASE("commit: a shard that changed before the commit is not committed") {
  const TempDir dir;
  const auto bytes = mm::ckpt::test::filled(16, 1);
  CheckpointWriter writer({dir.path(), 5, new_save_id(), "", 0, 1});
  writer.begin();
  const std::vector<ShardTensor> tensors = {{"w", DType::kF32, {4}, {}, bytes, {}}};
  const std::vector<ShardReport> reports = {writer.write_shard(tensors)};
  std::filesystem::resize_file(writer.temporary_directory() / shard_name(0), 40);
  CHECK_THROWS_WITH_AS(writer.commit(reports, {}), doctest::Contains("truncated by"),
                       mm::DataError);
  CHECK_FALSE(find_newest(dir.path()).found());
}

TEST_CASE(
    "F24: killed at any point of a save, a whole checkpoint no older than the last acknowledged "
    "remains") {
  int reached = 0;
  for (const std::string_view point : fault_points()) {
    for (const int nth : {1, 2}) {
      const TempDir dir;
      for (const uint64_t step : {100, 200, 300}) save_two_ranks(dir.path(), step);
      if (!save_and_die(dir.path(), 400, point, nth)) continue;
      ++reached;
      CAPTURE(point);
      CAPTURE(nth);
      const FoundCheckpoint found = find_newest(dir.path());
      const bool acknowledged =
          point == "save.committed" || point == "save.latest" || point.starts_with("retention");
      CHECK(found.manifest.step == (acknowledged ? 400 : 300));
      save_two_ranks(dir.path(), 400);
      apply_retention(dir.path(), {.keep_last = 2});
      CHECK(find_newest(dir.path()).manifest.step == 400);
    }
  }
  // All points but "moved_aside" strike, the six of the shards and the two of retention twice.
  CHECK(reached == 14 + 7 + 2);
}

TEST_CASE(
    "F24: killed while a step is saved for the second time, the first save of that step is found") {
  for (const std::string_view point : fault_points()) {
    if (point.starts_with("retention")) continue;
    const TempDir dir;
    save_two_ranks(dir.path(), 100);
    save_two_ranks(dir.path(), 200);
    CAPTURE(point);
    CHECK(save_and_die(dir.path(), 200, point, 1));
    CHECK(find_newest(dir.path()).manifest.step == 200);
  }
}

TEST_CASE("F24: killed in its first save, a run has nothing to find and starts afresh") {
  const TempDir dir;
  CHECK(save_and_die(dir.path(), 100, "file.half", 1));
  const FoundCheckpoint found = find_newest(dir.path());
  CHECK_FALSE(found.found());
  REQUIRE(found.passed_over.size() == 1);
  CHECK(found.passed_over[0].reason == "left by a save that was not finished");
}
