#include "lib/base/run_dir.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <optional>

#include "lib/base/error.h"
#include "lib/base/process.h"
#include "tests/base/temp_dir.h"

using mm::RunDir;
using mm::RunLock;
using mm::test::message_of;
using mm::test::TempDir;

TEST_CASE("RunDir: create makes the folders and an id that a later start finds again") {
  const TempDir dir;
  const RunDir run = RunDir::create(dir / "a/run");
  CHECK(run.run_id().size() == 16);
  CHECK(RunDir::create(dir / "a/run").run_id() == run.run_id());
  CHECK(RunDir::open(dir / "a/run").run_id() == run.run_id());
  CHECK(RunDir::create(dir / "b").run_id() != run.run_id());
  for (const auto& folder : {run.log_dir(), run.tensorboard_dir(), run.ledger_dir(),
                             run.checkpoint_dir(), run.fault_dir()}) {
    CHECK(std::filesystem::is_directory(folder));
  }
  CHECK(run.rank_log(3) == dir / "a/run/log/rank-00003.log");
  CHECK(run.rank_fault(3) == dir / "a/run/fault/rank-00003.json");
  CHECK(run.verdict() == dir / "a/run/verdict.json");
}

TEST_CASE("RunDir: what is no run directory is refused by name") {
  const TempDir dir;
  CHECK(message_of<mm::UsageError>([&] { RunDir::open(dir / "none"); }) ==
        (dir / "none").string() + ": not a run directory (no run.json)");
  mm::write_file_atomic(dir / "file", "x");
  CHECK(message_of<mm::DataError>([&] { RunDir::create(dir / "file"); }) ==
        (dir / "file").string() + ": is a file, expected a run directory or nothing");
  for (const char* text : {"{}", "[]", "{\"schema\":1,\"run_id\":3}",
                           "{\"schema\":2,\"run_id\":\"a\"}", "", "{\"schema\":1"}) {
    mm::write_file_atomic(dir / "run.json", text);
    CHECK(message_of<mm::DataError>([&] {
            RunDir::create(dir.path());
          }).starts_with((dir / "run.json").string()));
  }
  CHECK_THROWS_AS(RunDir::create("/proc/none/run"), mm::IoError);
}

TEST_CASE("RunLock: a second job is refused and told who holds the run") {
  const TempDir dir;
  const RunDir run = RunDir::create(dir / "run");
  std::optional<RunLock> first = RunLock::take(run, "1500.0.0");
  const std::string message =
      message_of<mm::UsageError>([&] { RunLock::take(run, "2500.0.0", 0.06); });
  CHECK(message.starts_with((dir / "run").string() + ": in use by process " +
                            std::to_string(::getpid()) + " on "));
  CHECK(message.find(", job 1500.0.0, since 20") != std::string::npos);
  CHECK(message.ends_with("; stop that job, or give another --run directory"));
  first.reset();
  CHECK_NOTHROW(RunLock::take(run, "2500.0.0"));
}

TEST_CASE("RunLock: the end of a process frees it, and children that it started do not hold it") {
  const TempDir dir;
  const RunDir run = RunDir::create(dir / "run");
  std::optional<RunLock> lock = RunLock::take(run, "a");
  const mm::Child child = mm::Child::spawn({.command = {"sleep", "100"}});
  lock.reset();
  CHECK_NOTHROW(RunLock::take(run, "b"));
}
