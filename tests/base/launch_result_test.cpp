#include "lib/base/launch_result.h"

#include <doctest/doctest.h>
#include <signal.h>

using mm::ExitStatus;
using mm::judge;
using mm::LaunchResult;
using mm::RankExit;

namespace {

RankExit code(int rank, int value, double at_s, bool stopped = false) {
  return {rank, ExitStatus{value, 0}, at_s, stopped};
}
RankExit killed(int rank, int signal, double at_s, bool stopped = false) {
  return {rank, ExitStatus{-1, signal}, at_s, stopped};
}

}  // namespace

TEST_CASE("judge: all done is 0, all saved is 75") {
  CHECK(judge({code(0, 0, 1), code(1, 0, 2)}, {}).exit_code == 0);
  const LaunchResult saved = judge({code(0, 75, 1), code(1, 75, 2)}, {SIGTERM});
  CHECK(saved.exit_code == 75);
  CHECK(saved.message == "saved on request; run again to go on");
  CHECK_FALSE(saved.first_dead.has_value());
  CHECK(judge({code(0, 0, 1), code(1, 75, 2)}, {}).exit_code == 75);
}

TEST_CASE("judge: a rank killed by a signal is 76 and named, whatever the others then do") {
  const LaunchResult result =
      judge({killed(1, SIGKILL, 1), code(0, 76, 1.1), killed(2, SIGKILL, 6, true)}, {});
  CHECK(result.exit_code == 76);
  CHECK(result.first_dead == 1);
  CHECK(result.signal == SIGKILL);
  CHECK(result.message == "rank 1 was killed by SIGKILL");
  CHECK(judge({killed(3, SIGSEGV, 1), code(0, 65, 2)}, {}).first_dead == 3);
}

TEST_CASE("judge: a rank's own code wins over the 76 of those that lost it") {
  const LaunchResult result = judge({code(0, 76, 1), code(2, 76, 1), code(1, 65, 1.2, true)}, {});
  CHECK(result.exit_code == 65);
  CHECK(result.first_dead == 1);
  CHECK(result.message == "rank 1 ended with exit code 65 (data_invalid)");
  CHECK_FALSE(result.signal.has_value());
  CHECK(judge({code(0, 74, 2), code(1, 79, 1)}, {}).exit_code == 79);
  CHECK(judge({code(0, 2, 1), code(1, 2, 1)}, {}).exit_code == 2);
}

TEST_CASE("judge: our own kill decides nothing, 76 alone does") {
  const LaunchResult result = judge({code(1, 76, 1), killed(0, SIGTERM, 2, true)}, {});
  CHECK(result.exit_code == 76);
  CHECK(result.first_dead == 1);
  CHECK(judge({code(1, 76, 1), killed(0, SIGSEGV, 2, true)}, {}).first_dead == 0);
}

TEST_CASE("judge: deaths by signal count before codes of the same moment") {
  CHECK(judge({code(0, 70, 1), killed(1, SIGKILL, 1)}, {}).first_dead == 1);
}

TEST_CASE("judge: a signal that the user sent is 128+n, not a lost peer") {
  const LaunchResult result = judge({killed(0, SIGINT, 1), killed(1, SIGINT, 1)}, {SIGINT});
  CHECK(result.exit_code == 130);
  CHECK(result.message == "rank 0 was killed by SIGINT before it could save");
  CHECK(judge({killed(0, SIGKILL, 1)}, {SIGINT}).exit_code == 76);
}

TEST_CASE("to_verdict: names rank and host only if somebody is at fault") {
  LaunchResult result = judge({killed(1, SIGKILL, 1)}, {});
  result.host = "n07";
  const mm::Verdict verdict = mm::to_verdict(result, 5);
  CHECK(verdict.code == 76);
  CHECK(verdict.rank == 1);
  CHECK(verdict.host == "n07");
  CHECK(verdict.signal == 9);
  CHECK(verdict.unix_ms == 5);
  LaunchResult done = judge({code(0, 0, 1)}, {});
  done.host = "n07";
  CHECK(mm::to_verdict(done, 0).host.empty());
}
