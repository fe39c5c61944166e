#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lib/base/process.h"
#include "lib/base/verdict.h"

namespace mm {

/// How one rank ended.
struct RankExit {
  int rank = 0;
  ExitStatus status;
  double at_s = 0;             ///< since the launch
  bool stopped_by_us = false;  ///< it ran on after another rank failed and was sent SIGTERM
};

struct LaunchResult {
  int exit_code = 0;
  std::string message;  ///< one line
  std::string host;
  std::optional<int> first_dead;  ///< the rank whose end decided a failure
  std::optional<int> signal;      ///< what killed that rank
  std::vector<RankExit> ranks;    ///< in the order in which they ended
};

/// The job's one exit code from how its ranks ended, `exits` in time order. `forwarded`: signals
/// that the user sent through the launcher. All 0: 0. 0 and 75 only: 75. Otherwise the first cause
/// in time decides: a rank killed by a signal is 76 (128+n if that signal was forwarded); a rank's
/// own code (2, 65, 74, 79, ...) is that code. Ranks that end with 76 only lost a peer: they decide
/// if there is no other cause. Deaths by signal count before codes that were noticed in the same
/// moment.
LaunchResult judge(std::vector<RankExit> exits, const std::vector<int>& forwarded);

/// The verdict that the launcher writes.
Verdict to_verdict(const LaunchResult& result, int64_t unix_ms);

}  // namespace mm
