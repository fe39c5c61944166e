#include "lib/base/process.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using mm::Child;
using mm::SpawnOptions;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

SpawnOptions shell(const std::string& script, const TempDir& dir) {
  return {.command = {"sh", "-c", script}, .environment = {}, .output = dir / "out"};
}

// Does the process end (or only wait to be collected by init) within 20 s?
bool ends(pid_t pid) {
  const std::string stat = "/proc/" + std::to_string(pid) + "/stat";
  const double deadline_s = mm::system_clock().monotonic_s() + 20;
  while (mm::system_clock().monotonic_s() < deadline_s) {
    try {
      if (mm::read_file(stat).find(") Z ") != std::string::npos) return true;
    } catch (const mm::IoError&) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("Child: exit codes and signals") {
  const TempDir dir;
  CHECK(Child::spawn(shell("exit 3", dir)).wait().text() == "exit code 3");
  CHECK(Child::spawn(shell("exit 0", dir)).wait().ok());
  Child killed = Child::spawn(shell("kill -9 $$", dir));
  CHECK(killed.wait().signal == SIGKILL);
  CHECK(killed.wait().text() == "SIGKILL");
  CHECK(killed.poll()->signal == SIGKILL);
  killed.signal(SIGTERM);
}

TEST_CASE("Child: environment, output file for both streams, and no terminal to read") {
  const TempDir dir;
  SpawnOptions options = shell("echo $MM_A; echo err >&2; read line || echo empty", dir);
  options.environment = {"MM_A=one two"};
  Child::spawn(options).wait();
  Child::spawn(shell("echo again", dir)).wait();
  CHECK(mm::read_file(dir / "out") == "one two\nerr\nempty\nagain\n");
}

TEST_CASE("Child: a program that cannot be run is a UsageError") {
  CHECK(message_of<mm::UsageError>([] { Child::spawn({.command = {"/none/program"}}); }) ==
        "/none/program: cannot run: No such file or directory");
  CHECK(message_of<mm::UsageError>([] { Child::spawn({.command = {}}); }) == "no command to run");
  CHECK_THROWS_AS(Child::spawn({.command = {"/etc/passwd"}}), mm::UsageError);
  CHECK_THROWS_AS(Child::spawn({.command = {"sh"}, .environment = {}, .output = "/none/out"}),
                  mm::IoError);
}

TEST_CASE("Child: a signal reaches the whole group") {
  const TempDir dir;
  Child child = Child::spawn(shell("sh -c 'echo $$; exec sleep 100' & wait", dir));
  while (mm::read_file(dir / "out").empty()) REQUIRE_FALSE(child.wait_for(0.01).has_value());
  const int grandchild = std::stoi(mm::read_file(dir / "out"));
  child.signal(SIGTERM);
  CHECK(child.wait_for(20)->signal == SIGTERM);
  CHECK(ends(grandchild));
}

TEST_CASE("Child: what is left of its group dies with it, a running one with its object") {
  const TempDir dir;
  pid_t pid = 0;
  {
    const Child child = Child::spawn(shell("exec sleep 100", dir));
    pid = child.pid();
    CHECK(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) != 0);
  CHECK(Child::spawn(shell("sleep 100 & echo $!", dir)).wait().ok());
  CHECK(ends(std::stoi(mm::read_file(dir / "out"))));
}

TEST_CASE("Child: wait_for gives up at its limit, and a child that ends is seen") {
  const TempDir dir;
  Child slow = Child::spawn(shell("exec sleep 100", dir));
  CHECK_FALSE(slow.wait_for(0.02).has_value());
  Child fast = Child::spawn(shell("exit 4", dir));
  CHECK(fast.wait_for(20)->code == 4);
}
