#include "lib/base/launch_result.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "lib/base/signals.h"

namespace mm {
namespace {

constexpr int kSaved = static_cast<int>(ExitCode::kSavedRunAgain);
constexpr int kPeerLost = static_cast<int>(ExitCode::kPeerLost);
constexpr int kSignalBase = 128;

bool is_good(const ExitStatus& s) { return s.signal == 0 && (s.code == 0 || s.code == kSaved); }

// SIGTERM and SIGKILL of a rank that we stopped are our own doing. A code of its own or a crash is
// not: the culprit may close its connections, and its peers end with 76, well before it is through
// with its own ending.
bool is_ours(const RankExit& e) {
  return e.stopped_by_us && (e.status.signal == SIGTERM || e.status.signal == SIGKILL);
}

bool is_peer_lost(const RankExit& e) { return e.status.signal == 0 && e.status.code == kPeerLost; }

bool is_cause(const RankExit& e) { return !is_ours(e) && !is_good(e.status) && !is_peer_lost(e); }

}  // namespace

LaunchResult judge(std::vector<RankExit> exits, const std::vector<int>& forwarded) {
  std::stable_sort(exits.begin(), exits.end(), [](const RankExit& a, const RankExit& b) {
    if (a.at_s != b.at_s) return a.at_s < b.at_s;
    return (a.status.signal != 0) > (b.status.signal != 0);
  });
  LaunchResult result;
  result.ranks = std::move(exits);
  const auto begin = result.ranks.begin();
  const auto end = result.ranks.end();
  auto cause = std::find_if(begin, end, is_cause);
  if (cause == end) cause = std::find_if(begin, end, is_peer_lost);
  if (cause == end) {
    const bool saved =
        std::any_of(begin, end, [](const RankExit& e) { return e.status.code == kSaved; });
    result.exit_code = saved ? kSaved : 0;
    result.message = saved ? "saved on request; run again to go on" : "done";
    return result;
  }
  result.first_dead = cause->rank;
  if (cause->status.signal == 0) {
    result.exit_code = cause->status.code;
    result.message = fmt::format("rank {} ended with exit code {} ({})", cause->rank,
                                 cause->status.code, exit_word(cause->status.code));
    return result;
  }
  result.signal = cause->status.signal;
  const bool asked =
      std::find(forwarded.begin(), forwarded.end(), *result.signal) != forwarded.end();
  result.exit_code = asked ? kSignalBase + *result.signal : kPeerLost;
  result.message = fmt::format("rank {} was killed by {}{}", cause->rank,
                               signal_name(*result.signal), asked ? " before it could save" : "");
  return result;
}

Verdict to_verdict(const LaunchResult& result, int64_t unix_ms) {
  Verdict verdict;
  verdict.code = result.exit_code;
  verdict.message = result.message;
  verdict.rank = result.first_dead;
  if (result.first_dead) verdict.host = result.host;
  verdict.signal = result.signal;
  verdict.unix_ms = unix_ms;
  return verdict;
}

}  // namespace mm
