#include "lib/health/guarded_reader.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

using mm::health::GuardedReader;

TEST_CASE("guarded reader: one child answers again and again, and keeps its state") {
  GuardedReader reader(
      [count = 0]() mutable { return std::to_string(::getpid()) + " " + std::to_string(++count); });
  CHECK_FALSE(reader.waiting_s());
  std::string child;
  for (int i = 1; i <= 3; ++i) {
    reader.ask();
    const auto answer = reader.take(10'000);
    REQUIRE(answer);
    if (child.empty()) child = answer->substr(0, answer->find(' '));
    CHECK(*answer == child + " " + std::to_string(i));
  }
  CHECK(child != std::to_string(::getpid()));
  CHECK(reader.take(0).failure().message == "nothing was asked");
}

TEST_CASE("guarded reader: text comes whole, also more than a socket holds, and nothing at all") {
  GuardedReader big([] { return std::string(3'000'000, 'x'); });
  big.ask();
  CHECK(big.take(10'000).value().size() == 3'000'000);
  GuardedReader none([] { return std::string(); });
  none.ask();
  CHECK(none.take(10'000).value().empty());
}

TEST_CASE("guarded reader: one that hangs keeps its question open and is not asked again") {
  GuardedReader reader([]() -> std::string {
    while (true) ::pause();
  });
  reader.ask();
  CHECK(reader.take(20).failure().kind == "hung");
  const double waited_s = reader.waiting_s().value();
  CHECK(waited_s >= 0.02);
  reader.ask();
  CHECK(reader.waiting_s().value() >= waited_s);
  CHECK(reader.take(0).failure().kind == "hung");
}

TEST_CASE("guarded reader: what is thrown comes as text; one that died is started anew") {
  GuardedReader throws([]() -> std::string { throw std::runtime_error("no such thing"); });
  for (int i = 0; i < 2; ++i) {
    throws.ask();
    CHECK(throws.take(10'000).failure().message == "no such thing");
  }
  GuardedReader dies([count = 0]() mutable -> std::string {
    // The state of a child dies with it.
    if (++count == 2) ::_exit(3);
    return "first";
  });
  for (int i = 0; i < 2; ++i) {
    dies.ask();
    CHECK(dies.take(10'000).value() == "first");
    dies.ask();
    CHECK(dies.take(10'000).failure().message == "the probing process died");
  }
}

TEST_CASE("guarded reader: its child has no file of others, and none is left when it is killed") {
  const int strange = ::dup(0);
  REQUIRE(strange > 2);
  pid_t child = 0;
  {
    GuardedReader reader([calls = 0]() mutable {
      while (calls++ > 0) ::pause();
      int open = 0;
      for (int fd = 3; fd < 1024; ++fd) open += ::fcntl(fd, F_GETFD) >= 0;
      return std::to_string(::getpid()) + " " + std::to_string(open);
    });
    reader.ask();
    const std::string answer = reader.take(10'000).value();
    child = std::stoi(answer);
    CHECK(answer.ends_with(" 1"));  // its own end
    reader.ask();
    CHECK(reader.take(20).failure().kind == "hung");
  }
  ::close(strange);
  CHECK(::kill(child, 0) != 0);  // not even as a zombie
}
