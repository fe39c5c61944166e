#include "lib/base/signals.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

TEST_CASE("StopSignals: counts each signal instead of ending the process, also a second one") {
  mm::StopSignals stop;
  CHECK_FALSE(stop.requested());
  ::raise(SIGUSR1);
  CHECK(stop.requested());
  ::raise(SIGTERM);
  ::raise(SIGTERM);
  CHECK(stop.total() == 3);
  CHECK(stop.count(SIGTERM) == 2);
  CHECK(stop.count(SIGINT) == 0);
}

TEST_CASE("StopSignals: restores what was before, starts from zero, and there is only one") {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGUSR1, nullptr, &before);
  {
    const mm::StopSignals stop;
    CHECK_FALSE(stop.requested());
    CHECK_THROWS_AS(mm::StopSignals(), mm::InternalError);
  }
  ::sigaction(SIGUSR1, nullptr, &after);
  CHECK((before.sa_handler == after.sa_handler));
  const mm::StopSignals again({SIGUSR2});
}

TEST_CASE("signal_name: the usual names") {
  CHECK(mm::signal_name(SIGKILL) == "SIGKILL");
  CHECK(mm::signal_name(64) == "signal 64");
}
