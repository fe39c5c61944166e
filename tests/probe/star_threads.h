#pragma once
#include <unistd.h>

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "lib/base/listen_socket.h"
#include "lib/probe/rank_star.h"

namespace mm::probe::test {

/// The environment of rank `rank` of `world` ranks of one job; rank 0 listens on `socket`. Hosts
/// are "n0", "n1", ..., `per_host` ranks each.
inline RankEnv rank_of(int rank, int world, const ListenSocket& socket, int per_host = 1) {
  RankEnv env;
  env.source = RankEnv::Source::kVariables;
  env.rank = rank;
  env.world = world;
  env.local_rank = rank % per_host;
  env.host = "n" + std::to_string(rank / per_host);
  env.master_port = socket.port();
  env.job_id = "test";
  if (rank == 0) env.listen_fd = ::dup(socket.descriptor());
  return env;
}

/// Runs `body(star)` as `world` ranks in threads of this process; rethrows the first error.
inline void run_ranks(int world, const std::function<void(RankStar&)>& body, int per_host = 1) {
  const ListenSocket socket = ListenSocket::on_loopback(0);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        RankStar star = RankStar::join(rank_of(rank, world, socket, per_host), {.timeout_s = 20});
        body(star);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace mm::probe::test
