#include "lib/health/guarded_call.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <stdexcept>

using mm::health::GuardedCall;

TEST_CASE("guarded call: text comes back whole, also more than a pipe holds") {
  const std::string big(3'000'000, 'x');
  GuardedCall call = GuardedCall::start([&] { return big; });
  const auto answer = call.finish(10'000);
  REQUIRE(answer);
  CHECK(*answer == big);
  GuardedCall nothing = GuardedCall::start([] { return std::string(); });
  CHECK(nothing.finish(10'000).value().empty());
}

TEST_CASE("guarded call: one that hangs, throws or dies is told apart") {
  GuardedCall hung = GuardedCall::start([]() -> std::string {
    while (true) ::pause();
  });
  CHECK(hung.finish(50).failure().kind == "hung");
  GuardedCall thrown =
      GuardedCall::start([]() -> std::string { throw std::runtime_error("no such thing"); });
  const auto failure = thrown.finish(10'000);
  CHECK(failure.failure().kind == "failed");
  CHECK(failure.failure().message == "no such thing");
  GuardedCall dead = GuardedCall::start([]() -> std::string { ::_exit(3); });
  CHECK(dead.finish(10'000).failure().message == "the probing process died");
}
