#include "lib/probe/pair_transport.h"

#include <doctest/doctest.h>

#include <mutex>

#include "lib/base/error.h"
#include "tests/probe/comm_error.h"
#include "tests/probe/star_threads.h"

using namespace mm::probe;
using mm::probe::test::error_of;

TEST_CASE("pair transport: both ends' view of a link over loopback, at any number of bytes") {
  for (const uint64_t bytes : {1ULL, 4096ULL, 100'000ULL, 3'000'001ULL}) {
    CAPTURE(bytes);
    std::mutex mutex;
    std::vector<PairMeasure> seen;
    test::run_ranks(2, [&](RankStar& star) {
      TransportOptions options{.rails = {{"lo", "127.0.0.1"}}, .bytes = bytes, .pings = 3};
      PairTransport links(options, star);
      const auto got = links.measure({{0, 1}}, 0);
      const std::lock_guard lock(mutex);
      seen.push_back(got.at(0));
    });
    REQUIRE(seen.size() == 2);
    // All ranks have the same figures.
    CHECK(seen[0].gb_s == seen[1].gb_s);
    CHECK(seen[0].latency_us == seen[1].latency_us);
    CHECK(seen[0].gb_s > 0);
    CHECK(seen[0].error == "");
    CHECK(seen[0].stall_ms >= 0);
    CHECK(seen[0].losses_a == 0);
    CHECK(seen[0].losses_b == 0);
  }
}

TEST_CASE("pair transport: a slot of nobody, and ranks that are in no pair, only wait") {
  std::mutex mutex;
  size_t measured = 0, losses = 0;
  test::run_ranks(3, [&](RankStar& star) {
    PairTransport links({.rails = {{"lo", "127.0.0.1"}}, .bytes = 1000, .pings = 1}, star);
    const auto none = links.measure({}, 0), one = links.measure({{0, 2}}, 0);
    const auto lost = links.losses(0);
    const std::lock_guard lock(mutex);
    measured += none.size() + one.size();
    losses += lost.size();
    for (const int64_t count : lost) CHECK(count == 0);
  });
  CHECK(measured == 3);
  CHECK(losses == 9);
}

TEST_CASE("pair transport: ranks with another number of rails are an error that says so") {
  std::string message;
  try {
    test::run_ranks(2, [](RankStar& star) {
      std::vector<Interface> rails(star.rank() == 1 ? 2 : 1, {"lo", "127.0.0.1"});
      PairTransport links({.rails = rails}, star);
    });
  } catch (const mm::UsageError& error) {
    message = error.what();
  }
  CHECK(message.find("rails, this one") != std::string::npos);
}

TEST_CASE("pair transport: a rail whose address nobody has is an error at the door") {
  const std::string message = error_of([] {
    test::run_ranks(1, [](RankStar& star) {
      PairTransport links({.rails = {{"ib9", "203.0.113.7"}}}, star);
    });
  });
  CHECK(message.find("203.0.113.7") != std::string::npos);
}

TEST_CASE("pair transport: one rank that cannot listen keeps nobody waiting, and all say why") {
  std::mutex mutex;
  std::vector<std::string> said;
  test::run_ranks(3, [&](RankStar& star) {
    const char* address = star.rank() == 1 ? "203.0.113.7" : "127.0.0.1";
    const std::string message = error_of([&] {
      PairTransport links({.rails = {{"ib9", address}}}, star);
    });
    const std::lock_guard lock(mutex);
    said.push_back(message);
  });
  REQUIRE(said.size() == 3);
  for (const std::string& message : said) {
    CHECK(message == said[0]);
    CHECK(message.starts_with("rank 1: "));
  }
}

TEST_CASE("pair transport: hosts stand for ranks; several of one host are numbered") {
  CHECK(member_names({"a", "b"}) == std::vector<std::string>{"a", "b"});
  CHECK(member_names({"a", "b", "a"}) == std::vector<std::string>{"a#0", "b", "a#2"});
  CHECK(member_names({}).empty());
}

TEST_CASE("pair transport: rails as they are wished, else the address that is known to work") {
  const auto none = choose_rails({}, "10.0.0.1", 2);
  REQUIRE(none.size() == 1);
  CHECK(none[0].name == "default");
  CHECK(none[0].address == "10.0.0.1");
  const auto loopback = choose_rails({"=lo", "lo"}, "", 1);
  REQUIRE(loopback.size() == 2);
  CHECK(loopback[1].address == "127.0.0.1");
  CHECK_THROWS_AS(choose_rails({"=no-such-if"}, "", 1), mm::UsageError);
}
