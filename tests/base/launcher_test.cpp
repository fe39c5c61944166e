#include "lib/base/launcher.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <set>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/listen_socket.h"
#include "lib/base/rank_env.h"
#include "tests/base/temp_dir.h"

using mm::launch;
using mm::LaunchOptions;
using mm::LaunchResult;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

// Runs `script` on every rank; "D" is a directory for them, PARENT this process. What rank 0 prints
// goes to the test's output.
LaunchResult launch_script(int nproc, const std::string& script, const TempDir& dir,
                           double grace_s = 5) {
  ::setenv("D", dir.path().c_str(), 1);
  ::setenv("PARENT", std::to_string(::getpid()).c_str(), 1);
  LaunchOptions options;
  options.nproc = nproc;
  options.command = {"sh", "-c", script};
  options.log_dir = dir.path();
  options.grace_s = grace_s;
  return launch(options);
}

std::string content(const TempDir& dir, const std::string& name) {
  return mm::read_file(dir / name);
}

// Waits in a rank until the file is there; gives up after some 20 s.
std::string until(const std::string& file) {
  return "i=0; while [ ! -e $D/" + file +
         " ] && [ $i -lt 2000 ]; do sleep 0.01; i=$((i+1)); done; ";
}

}  // namespace

TEST_CASE("launch: every rank gets its variables, ranks above 0 their log file") {
  const TempDir dir;
  ::unsetenv("OMP_NUM_THREADS");
  const LaunchResult result = launch_script(
      3,
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR > $D/env$RANK; "
      "echo $MASTER_PORT $MM_JOB_ID > $D/job$RANK; echo $OMP_NUM_THREADS > $D/omp$RANK; "
      "[ $RANK = 0 ] || echo said",
      dir);
  CHECK(result.exit_code == 0);
  CHECK(result.message == "done");
  CHECK(result.ranks.size() == 3);
  CHECK(content(dir, "env0") == "0 3 0 3 127.0.0.1\n");
  CHECK(content(dir, "env2") == "2 3 2 3 127.0.0.1\n");
  CHECK(content(dir, "job0") == content(dir, "job2"));
  CHECK(std::stoi(content(dir, "omp1")) >= 1);
  CHECK(content(dir, "rank-00001.log") == "said\n");
  CHECK_FALSE(std::filesystem::exists(dir / "rank-00000.log"));
}

TEST_CASE("launch: OMP_NUM_THREADS that is set stays") {
  const TempDir dir;
  ::setenv("OMP_NUM_THREADS", "7", 1);
  launch_script(1, "echo $OMP_NUM_THREADS > $D/omp", dir);
  ::unsetenv("OMP_NUM_THREADS");
  CHECK(content(dir, "omp") == "7\n");
}

TEST_CASE("launch: a rank killed by a signal ends the job with 76 at once, named") {
  const TempDir dir;
  const LaunchResult result =
      launch_script(3, "if [ $RANK = 1 ]; then kill -9 $$; fi; exec sleep 100", dir);
  CHECK(result.exit_code == 76);
  CHECK(result.first_dead == 1);
  CHECK(result.signal == SIGKILL);
  CHECK_FALSE(result.host.empty());
  REQUIRE(result.ranks.size() == 3);
  CHECK(result.ranks[0].rank == 1);
  CHECK(result.ranks[2].stopped_by_us);
  CHECK(result.ranks[2].at_s - result.ranks[0].at_s < 4);
}

TEST_CASE("launch: survivors that ignore SIGTERM are killed after the grace") {
  const TempDir dir;
  const LaunchResult result = launch_script(2,
                                            "if [ $RANK = 1 ]; then " + until("ready") +
                                                "exit 65; fi; trap '' TERM; : > $D/ready; "
                                                "while :; do sleep 0.05; done",
                                            dir, 0.3);
  CHECK(result.exit_code == 65);
  CHECK(result.first_dead == 1);
  CHECK(result.ranks[1].status.signal == SIGKILL);
  CHECK(result.ranks[1].at_s - result.ranks[0].at_s > 0.25);
}

TEST_CASE("launch: a code of its own wins over the 76 of its peers, all 75 is 75") {
  const TempDir dir;
  const std::string peer = until("ready") + ": > $D/lost; exit 76";
  const std::string culprit = "trap '' TERM; : > $D/ready; " + until("lost") + "exit 74";
  const LaunchResult result =
      launch_script(2, "if [ $RANK = 0 ]; then " + peer + "; fi; " + culprit, dir);
  CHECK(result.exit_code == 74);
  CHECK(result.first_dead == 1);
  CHECK(launch_script(2, "exit 75", dir).exit_code == 75);
}

TEST_CASE("C61: SIGUSR1 and a second signal to the launcher reach every rank, which end with 75") {
  const TempDir dir;
  const LaunchResult result = launch_script(
      2,
      "trap 'echo usr >> $D/got$RANK' USR1; trap 'echo term >> $D/got$RANK; exit 75' TERM; "
      ": > $D/ready$RANK; " +
          until("ready0") + until("ready1") +
          "[ $RANK = 1 ] && kill -USR1 $PARENT; "
          "while [ ! -e $D/got$RANK ]; do sleep 0.01; done; : > $D/saw$RANK; " +
          until("saw0") + until("saw1") +
          "[ $RANK = 1 ] && kill -TERM $PARENT; while :; do sleep 0.01; done",
      dir);
  CHECK(result.exit_code == 75);
  CHECK(content(dir, "got0") == "usr\nterm\n");
  CHECK(content(dir, "got1") == "usr\nterm\n");
}

TEST_CASE("launch: ranks without a handler that the user stops give 128+n") {
  const TempDir dir;
  const LaunchResult result =
      launch_script(2,
                    ": > $D/r$RANK; " + until("r0") + until("r1") +
                        "[ $RANK = 1 ] && kill -INT $PARENT; exec sleep 100",
                    dir);
  CHECK(result.exit_code == 128 + SIGINT);
}

TEST_CASE("C60: launches side by side get ports of their own, kept for rank 0") {
  const TempDir dir;
  std::set<int> ports;
  {
    std::vector<mm::ListenSocket> sockets;
    for (int i = 0; i < 20; ++i)
      ports.insert(sockets.emplace_back(mm::ListenSocket::on_loopback(0)).port());
  }
  CHECK(ports.size() == 20);
  const LaunchResult result =
      launch_script(2,
                    "if [ $RANK = 0 ]; then readlink /proc/self/fd/$MM_LISTEN_FD > $D/fd; else "
                    "echo \"[$MM_LISTEN_FD]\" > $D/none; fi",
                    dir);
  CHECK(result.exit_code == 0);
  CHECK(content(dir, "fd").starts_with("socket:"));
  CHECK(content(dir, "none") == "[]\n");
}

TEST_CASE("C60: a fixed port that is busy is an error at once that names it") {
  const TempDir dir;
  const mm::ListenSocket busy = mm::ListenSocket::on_loopback(0);
  const std::string port = std::to_string(busy.port());
  ::setenv("MASTER_PORT", port.c_str(), 1);
  CHECK(message_of<mm::CommError>([&] { launch_script(2, "exit 0", dir); }) ==
        "port " + port +
            " of 127.0.0.1: cannot listen: Address already in use; choose another "
            "MASTER_PORT or unset it");
  ::unsetenv("MASTER_PORT");
}

// Not a test of its own: what the ranks of the next one run.
TEST_CASE("rank probe" * doctest::skip()) {
  const mm::RankEnv ranks = mm::read_rank_env();
  const std::string place = ranks.master_addr + ":" + std::to_string(ranks.master_port);
  mm::write_file_atomic(
      std::filesystem::path(::getenv("D")) / ("probe" + std::to_string(ranks.rank)),
      mm::describe(ranks) + " " + place + " " + ranks.job_id + (ranks.listen_fd >= 0 ? " L" : ""));
}

TEST_CASE("launch: what it sets is what read_rank_env reads, and only rank 0 holds the port") {
  const TempDir dir;
  ::setenv("D", dir.path().c_str(), 1);
  LaunchOptions options;
  options.nproc = 2;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  options.command = {self, "--minimal", "--no-version", "--no-skip", "--test-case=rank probe"};
  options.log_dir = dir.path();
  CHECK(launch(options).exit_code == 0);
  const std::string zero = content(dir, "probe0");
  const std::string one = content(dir, "probe1");
  CHECK(zero.starts_with("rank 0 of 2 on "));
  CHECK(zero.ends_with(" L"));
  CHECK(one.starts_with("rank 1 of 2 on "));
  const size_t address = zero.find("127.0.0.1:");
  REQUIRE(address != std::string::npos);
  CHECK(zero.substr(address) == one.substr(one.find("127.0.0.1:")) + " L");
}

TEST_CASE("launch: impossible options are usage errors") {
  CHECK(message_of<mm::UsageError>([] { launch({.nproc = 0, .command = {"true"}}); }) ==
        "--nproc 0: expected 1 to 4096");
  CHECK(message_of<mm::UsageError>([] { launch({.nproc = 1}); }) == "no command to launch");
  CHECK(message_of<mm::UsageError>([] { launch({.nproc = 2, .command = {"/none/x"}}); }) ==
        "/none/x: cannot run: No such file or directory");
}
