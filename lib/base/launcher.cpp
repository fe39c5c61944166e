#include "lib/base/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/listen_socket.h"
#include "lib/base/log.h"
#include "lib/base/random_hex.h"
#include "lib/base/signals.h"
#include "lib/base/thread_pool.h"

namespace mm {
namespace {

constexpr int kMaxProcesses = 4096;
constexpr int kMaxPort = 65535;
constexpr int kSaved = static_cast<int>(ExitCode::kSavedRunAgain);
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::array kForwarded{SIGTERM, SIGINT, SIGUSR1};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options),
        socket_(ListenSocket::on_loopback(
            static_cast<int>(env::get_int("MASTER_PORT", 1, kMaxPort).value_or(0)))),
        start_s_(system_clock().monotonic_s()) {}

  LaunchResult run() {
    for (int rank = 0; rank < options_.nproc; ++rank) spawn(rank);
    while (exits_.size() < ranks_.size()) {
      forward_signals();
      reap();
      stop_survivors();
      std::this_thread::sleep_for(kPollInterval);
    }
    std::vector<int> sent;
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      if (forwarded_[i] > 0) sent.push_back(kForwarded[i]);
    }
    LaunchResult result = judge(std::move(exits_), sent);
    result.host = host_name();
    return result;
  }

 private:
  struct Rank {
    Child child;
    bool ended = false;
    bool told_to_stop = false;
  };

  std::vector<std::string> environment(int rank) const {
    const auto number = [](const char* name, int value) {
      return std::string(name) + "=" + std::to_string(value);
    };
    const int threads = std::max(1, usable_cores() / options_.nproc);
    const std::string omp = env::get("OMP_NUM_THREADS").value_or(std::to_string(threads));
    const std::string listen = rank == 0 ? std::to_string(socket_.descriptor()) : "";
    return {number("RANK", rank),       number("WORLD_SIZE", options_.nproc),
            number("LOCAL_RANK", rank), number("LOCAL_WORLD_SIZE", options_.nproc),
            "MASTER_ADDR=127.0.0.1",    number("MASTER_PORT", socket_.port()),
            "MM_LISTEN_FD=" + listen,   "MM_JOB_ID=" + job_id_,
            "OMP_NUM_THREADS=" + omp};
  }

  void spawn(int rank) {
    SpawnOptions spawn;
    spawn.command = options_.command;
    spawn.environment = environment(rank);
    if (rank > 0 && !options_.log_dir.empty()) {
      spawn.output = options_.log_dir / fmt::format("rank-{:05}.log", rank);
    }
    if (rank == 0) spawn.inherit_fd = socket_.descriptor();
    ranks_.push_back({Child::spawn(spawn)});
  }

  void forward_signals() {
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      for (; forwarded_[i] < stop_.count(kForwarded[i]); ++forwarded_[i]) {
        log::info("launch", "signal passed on to all ranks",
                  {{"signal", signal_name(kForwarded[i])}});
        for (Rank& rank : ranks_) rank.child.signal(kForwarded[i]);
      }
    }
  }

  void reap() {
    const double now_s = system_clock().monotonic_s();
    for (size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      if (rank.ended) continue;
      const auto status = rank.child.poll();
      if (!status) continue;
      rank.ended = true;
      exits_.push_back({static_cast<int>(i), *status, now_s - start_s_, rank.told_to_stop});
      const bool good = status->signal == 0 && (status->code == 0 || status->code == kSaved);
      if (!good && !failed_s_) {
        failed_s_ = now_s;
        log::error("launch", "a rank failed; the others are stopped",
                   {{"rank", i}, {"status", status->text()}, {"grace_s", options_.grace_s}});
      }
    }
  }

  void stop_survivors() {
    if (!failed_s_) return;
    const bool kill = system_clock().monotonic_s() - *failed_s_ > options_.grace_s;
    for (Rank& rank : ranks_) {
      // One that ended since the last look was not stopped by us.
      if (rank.ended || rank.child.poll()) continue;
      if (kill) rank.child.signal(SIGKILL);
      if (!rank.told_to_stop) rank.child.signal(SIGTERM);
      rank.told_to_stop = true;
    }
  }

  const LaunchOptions& options_;
  const StopSignals stop_{SIGTERM, SIGINT, SIGUSR1};
  const ListenSocket socket_;
  const double start_s_;
  const std::string job_id_ = random_hex(8);
  std::vector<Rank> ranks_;
  std::vector<RankExit> exits_;
  std::array<int, kForwarded.size()> forwarded_{};
  std::optional<double> failed_s_;
};

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  if (options.nproc < 1 || options.nproc > kMaxProcesses) {
    throw UsageError("--nproc {}: expected 1 to {}", options.nproc, kMaxProcesses);
  }
  if (options.command.empty()) throw UsageError("no command to launch");
  return Launch(options).run();
}

}  // namespace mm
