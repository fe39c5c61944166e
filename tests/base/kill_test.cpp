// What a kill -9 leaves behind: the tests fork, kill the copy, and look.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/launcher.h"
#include "lib/base/run_dir.h"
#include "tests/base/temp_dir.h"

using mm::test::TempDir;

namespace {

constexpr double kDeadlineS = 30;

// Runs `body` in a forked copy of this process.
pid_t forked(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  body();
  ::_exit(0);
}

void kill_and_collect(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

bool comes_true(const std::function<bool()>& condition) {
  const double deadline_s = mm::system_clock().monotonic_s() + kDeadlineS;
  while (mm::system_clock().monotonic_s() < deadline_s) {
    if (condition()) return true;
  }
  return false;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Gone, or a zombie that nobody has collected yet.
bool has_ended(int pid) {
  try {
    const std::string stat = mm::read_file("/proc/" + std::to_string(pid) + "/stat");
    return stat.find(") Z ") != std::string::npos;
  } catch (const mm::IoError&) {
    return true;
  }
}

}  // namespace

TEST_CASE("write_file_atomic: a kill at any moment leaves one whole version") {
  const TempDir dir;
  const std::string a(200'000, 'a');
  const std::string b(100'000, 'b');
  mm::write_file_atomic(dir / "f", a);
  for (int round = 0; round < 10; ++round) {
    const pid_t writer = forked([&] {
      for (int i = 0;; ++i) mm::write_file_atomic(dir / "f", i % 2 == 0 ? b : a);
    });
    for (int reads = 0; reads < 5 + round; ++reads) {
      const std::string content = mm::read_file(dir / "f");
      REQUIRE((content == a || content == b));
    }
    kill_and_collect(writer);
    const std::string content = mm::read_file(dir / "f");
    REQUIRE((content == a || content == b));
  }
}

TEST_CASE("RunLock: the kernel frees it when its holder is killed") {
  const TempDir dir;
  const mm::RunDir run = mm::RunDir::create(dir / "run");
  const pid_t holder = forked([&] {
    const mm::RunLock lock = mm::RunLock::take(run, "first");
    mm::write_file_atomic(dir / "locked", "");
    while (true) ::pause();
  });
  REQUIRE(comes_true([&] { return is_there(dir / "locked"); }));
  const std::string message =
      mm::test::message_of<mm::UsageError>([&] { mm::RunLock::take(run, "second"); });
  CHECK(message.find("in use by process " + std::to_string(holder)) != std::string::npos);
  CHECK(message.find("job first") != std::string::npos);
  kill_and_collect(holder);
  CHECK_NOTHROW(mm::RunLock::take(run, "second"));
}

TEST_CASE("launch: ranks die with their launcher") {
  const TempDir dir;
  const pid_t launcher = forked([&] {
    mm::LaunchOptions options;
    options.nproc = 2;
    const std::string base = dir.path().string();
    options.command = {"sh", "-c",
                       "echo $$ > " + base + "/tmp$RANK; mv " + base + "/tmp$RANK " + base +
                           "/pid$RANK; exec sleep 100"};
    mm::launch(options);
  });
  REQUIRE(comes_true([&] { return is_there(dir / "pid0") && is_there(dir / "pid1"); }));
  const int first = std::stoi(mm::read_file(dir / "pid0"));
  const int second = std::stoi(mm::read_file(dir / "pid1"));
  CHECK_FALSE(has_ended(first));
  kill_and_collect(launcher);
  CHECK(comes_true([&] { return has_ended(first) && has_ended(second); }));
}
