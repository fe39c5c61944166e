#include "lib/data/pack_tasks.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

using Variables = std::map<std::string, std::string>;

mm::env::Lookup lookup_in(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

/// Spins until it holds or ten seconds have passed.
template <typename Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("task share: RANK and WORLD_SIZE, else Slurm's, else one task; half a pair is refused") {
  const auto share = [](const Variables& variables) {
    const TaskShare s = read_task_share(lookup_in(variables));
    return std::pair(s.task, s.tasks);
  };
  CHECK(share({}) == std::pair(0, 1));
  CHECK(share({{"RANK", "2"}, {"WORLD_SIZE", "8"}}) == std::pair(2, 8));
  CHECK(share({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}}) == std::pair(3, 4));
  CHECK(share({{"SLURM_NTASKS", "4"}}) == std::pair(0, 1));
  CHECK(share({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}}) ==
        std::pair(0, 2));
  for (const Variables& wrong :
       {Variables{{"RANK", "2"}}, Variables{{"WORLD_SIZE", "2"}},
        Variables{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, Variables{{"SLURM_PROCID", "1"}},
        Variables{{"RANK", "x"}, {"WORLD_SIZE", "2"}}}) {
    CHECK_THROWS_AS(read_task_share(lookup_in(wrong)), mm::UsageError);
  }
}

TEST_CASE("task board: of many that claim, one gets it; what another holds is not free") {
  const TempDir dir;
  TaskBoard one(dir.path(), 60), two(dir.path(), 60);
  std::atomic<int> got = 0;
  mm::parallel_for(16, 8, [&](size_t i) { got += (i % 2 ? one : two).claim("w"); });
  CHECK(got == 1);
  CHECK((one.owner("w") == one.id() || one.owner("w") == two.id()));
  CHECK(!one.is_free("w"));
  CHECK(one.is_free("x"));
  CHECK(one.owner("x").empty());
}

TEST_CASE("task board: the claims of a task that ended, or was killed, are free for one other") {
  const TempDir dir;
  auto gone = std::make_unique<TaskBoard>(dir.path(), 60);
  CHECK(gone->claim("ended"));
  gone.reset();
  const pid_t child = fork();
  if (child == 0) {
    TaskBoard board(dir.path(), 60);
    _exit(board.claim("killed") ? 0 : 1);  // leaves its heartbeat behind, as a kill does
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  TaskBoard one(dir.path(), 60), two(dir.path(), 60);
  for (const char* work : {"ended", "killed"}) {
    CHECK(one.is_free(work));
    CHECK(one.claim(work));
    CHECK(!two.claim(work));
    CHECK(two.owner(work) == one.id());
  }
  // Nothing of the dead is left but their claims.
  CHECK(std::distance(fs::directory_iterator(dir / "tasks"), fs::directory_iterator{}) == 2);
  CHECK(std::distance(fs::directory_iterator(dir / "aside"), fs::directory_iterator{}) == 2);
}

TEST_CASE("task board: on another machine a heartbeat that stands still is what tells") {
  const TempDir dir;
  TaskBoard board(dir.path(), 0.3);
  mm::write_file_atomic(dir / "tasks/far.1.aa", "otherboot 1 7\n");
  mm::write_file_atomic(dir / "claims/w.0", "far.1.aa");
  CHECK(!board.is_free("w"));
  for (int beat = 8; beat < 11; ++beat) {
    mm::write_file_atomic(dir / "tasks/far.1.aa", fmt::format("otherboot 1 {}\n", beat));
    CHECK(!board.is_free("w"));
  }
  CHECK(comes_true([&] { return board.is_free("w"); }));
  CHECK(board.claim("w"));
}

TEST_CASE("task board: a living task stays alive to others longer than the time for dead ones") {
  const TempDir dir;
  TaskBoard one(dir.path(), 0.5), two(dir.path(), 0.5);
  CHECK(one.claim("w"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
  bool alive = true;
  while (std::chrono::steady_clock::now() < end) alive = alive && !two.is_free("w");
  CHECK(alive);
}

TEST_CASE("task board: of several that write a new file, the first one's content stays") {
  const TempDir dir;
  TaskBoard one(dir.path(), 60), two(dir.path(), 60);
  CHECK(one.write_new(dir / "f", "first"));
  CHECK(!two.write_new(dir / "f", "second"));
  CHECK(mm::read_file(dir / "f") == "first");
  two.write(dir / "f", "third");
  CHECK(mm::read_file(dir / "f") == "third");
}

TEST_CASE("task board: claims go on when a file has no more links to give") {
  const TempDir dir;
  TaskBoard board(dir.path(), 60);
  int claimed = 0;
  for (int i = 0; i < 70000; ++i) {
    // ext4 gives a file 65,000 links; other file systems more.
    claimed += board.claim(std::to_string(i));
  }
  CHECK(claimed == 70000);
}
