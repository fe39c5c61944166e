#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "lib/base/result.h"

namespace mm::health {

/// A reader that runs in a child process, because what it reads may never answer (a dead mount, a
/// driver that waits for lost hardware): the caller goes on at the deadline in any case. Several
/// may run at once. Not thread-safe; start it before the process has threads.
class GuardedCall {
 public:
  /// Forks; `read` runs in the child, and its text (at most 16 MiB) comes back. What it throws
  /// becomes a Failure "failed".
  static GuardedCall start(const std::function<std::string()>& read);
  GuardedCall(GuardedCall&& other) noexcept;
  GuardedCall(const GuardedCall&) = delete;
  ~GuardedCall();

  /// Waits until `deadline_ms` after the start. Failures: "hung" (the child is killed, or left to
  /// init if the kernel does not let it die), "failed", "no_process".
  Result<std::string> finish(int deadline_ms);

 private:
  GuardedCall() = default;
  pid_t child_ = -1;
  int pipe_ = -1;
  double start_s_ = 0;
};

}  // namespace mm::health
