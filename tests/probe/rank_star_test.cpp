#include "lib/probe/rank_star.h"

#include <doctest/doctest.h>

#include <mutex>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/probe/interface_choice.h"
#include "tests/health/planted_node.h"
#include "tests/probe/comm_error.h"
#include "tests/probe/star_threads.h"

using namespace mm::probe;
using mm::health::test::PlantedTree;
using mm::probe::test::error_of;

namespace {

mm::RankEnv without_port(int rank, int world, const std::string& job) {
  mm::RankEnv env;
  env.rank = rank;
  env.world = world;
  env.host = "n" + std::to_string(rank);
  env.job_id = job;
  return env;
}

}  // namespace

TEST_CASE("rank star: everybody gets everybody's text in rank order, and rank 0's") {
  std::mutex mutex;
  int checked = 0;
  test::run_ranks(5, [&](RankStar& star) {
    const auto all = star.all_gather("from " + std::to_string(star.rank()));
    const std::string first = star.broadcast("rank " + std::to_string(star.rank()));
    const std::lock_guard lock(mutex);
    REQUIRE(all.size() == 5);
    CHECK(all[3] == "from 3");
    CHECK(first == "rank 0");
    CHECK(star.hosts()[4] == "n4");
    ++checked;
  });
  CHECK(checked == 5);
}

TEST_CASE("rank star: a world of one needs no socket") {
  RankStar star = RankStar::join(without_port(0, 1, "alone"), {});
  CHECK(star.all_gather("x") == std::vector<std::string>{"x"});
}

TEST_CASE("C60: two jobs at once on one host each find their own ranks through a free port") {
  const PlantedTree tree;
  std::vector<std::thread> threads;
  std::vector<std::string> got(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string job = i < 2 ? "1500" : "2500";
      RankStar star = RankStar::join(without_port(i % 2, 2, job), {.directory = tree.root()});
      got[static_cast<size_t>(i)] = star.broadcast(job);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(got == std::vector<std::string>{"1500", "1500", "2500", "2500"});
  CHECK(std::filesystem::is_empty(tree.root()));
}

TEST_CASE("C60: a busy port is named, and a caller of another job is turned away") {
  const mm::ListenSocket socket = mm::ListenSocket::on_loopback(0);
  mm::RankEnv busy = without_port(0, 2, "a");
  busy.master_port = socket.port();
  CHECK(error_of([&] {
          RankStar::join(busy, {.timeout_s = 1});
        }).starts_with("port " + std::to_string(socket.port())));
  std::string stranger;
  std::thread other([&] {
    mm::RankEnv env = test::rank_of(1, 2, socket);
    env.job_id = "another";
    stranger = error_of([&] { RankStar::join(env, {.timeout_s = 3}); });
  });
  const std::string missing =
      error_of([&] { RankStar::join(test::rank_of(0, 2, socket), {.timeout_s = 0.5}); });
  other.join();
  CHECK(missing == "ranks 1 did not come within 0.5 s");
  CHECK(stranger.find("this is another job") != std::string::npos);
}

TEST_CASE("C57: a probe that cannot connect ends within its time, naming the peer") {
  const double start_s = mm::system_clock().monotonic_s();
  mm::RankEnv env = without_port(1, 2, "a");
  env.master_port = 1;  // nobody listens there
  const std::string message = error_of([&] { RankStar::join(env, {.timeout_s = 0.3}); });
  CHECK(message.starts_with("rank 0 on 127.0.0.1: cannot connect to 127.0.0.1 port 1"));
  CHECK(mm::system_clock().monotonic_s() - start_s < 5);
  const PlantedTree tree;
  CHECK(error_of([&] {
          RankStar::join(without_port(1, 2, "b"), {.directory = tree.root(), .timeout_s = 0.2});
        }).find("rank 0 did not write its port") != std::string::npos);
}

TEST_CASE("rank star: rank 0 tells the address that others come by, not its loopback") {
  std::string outer;
  for (const Interface& one : local_interfaces())
    if (!one.address.starts_with("127.") && outer.empty()) outer = one.address;
  if (outer.empty()) {
    MESSAGE("skipped: this machine has nothing but its loopback");
    return;
  }
  const PlantedTree tree;
  // Rank 0's own name means its loopback here, as on many a node; the others know it by a network.
  std::vector<std::string> own(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      mm::RankEnv env = without_port(rank, 2, "loop");
      env.master_addr = rank == 0 ? "localhost" : outer;
      RankStar star = RankStar::join(env, {.directory = tree.root(), .timeout_s = 20});
      own[static_cast<size_t>(rank)] = star.own_address();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(own == std::vector<std::string>{outer, outer});
}

TEST_CASE("rank star: a rank that leaves is named") {
  const std::string message = error_of([] {
    test::run_ranks(3, [](RankStar& star) {
      if (star.rank() == 2) return;
      star.barrier();
    });
  });
  CHECK(message.find("rank 2 on n2: closed the connection") != std::string::npos);
}

TEST_CASE("rank star: if one rank cannot go on, all learn why, and the star still stands") {
  std::mutex mutex;
  std::vector<std::string> told;
  int after = 0;
  test::run_ranks(4, [&](RankStar& star) {
    star.agree("");
    std::string message;
    try {
      star.agree(star.rank() % 2 == 1 ? "no such interface" : "");
    } catch (const mm::CommError& error) {
      message = error.what();
    }
    const auto all = star.all_gather("x");
    const std::lock_guard lock(mutex);
    told.push_back(message);
    after += static_cast<int>(all.size());
  });
  // Two ranks that say the same are quoted once.
  CHECK(told == std::vector<std::string>(4, "no such interface"));
  CHECK(after == 16);
}
