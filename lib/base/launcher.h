#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/launch_result.h"

namespace mm {

struct LaunchOptions {
  int nproc = 1;
  std::vector<std::string> command;  ///< what every rank runs
  /// Rank r > 0 appends its output to log_dir/rank-RRRRR.log, rank 0 writes where the launcher
  /// does. Empty: all do.
  std::filesystem::path log_dir;
  double grace_s = 5;  ///< between SIGTERM and SIGKILL for the ranks that outlive a failed one
};

/// Runs `nproc` copies of a command on this machine as ranks of one job and returns when all have
/// ended: `mmtrain launch`.
/// - Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR=127.0.0.1, MASTER_PORT,
/// MM_JOB_ID, and OMP_NUM_THREADS
///   (cores / nproc, at least 1) unless it is set. The port is held open all the time and given to
///   rank 0 as MM_LISTEN_FD; a MASTER_PORT that is set is used as it is, and CommError says so at
///   once if it is busy.
/// - SIGTERM, SIGINT and SIGUSR1 go on to every rank, each time; the ranks decide what they mean.
/// The launcher itself waits.
/// - A rank that fails (killed, or a code other than 0 and 75) is noticed within 50 ms; the others
/// get SIGTERM and, after
///   `grace_s`, SIGKILL. If the launcher dies, the kernel kills the ranks.
/// Call from the main thread; no other StopSignals may live.
LaunchResult launch(const LaunchOptions& options);

}  // namespace mm
