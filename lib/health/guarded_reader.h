#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "lib/base/result.h"

namespace mm::health {

/// A reader that is asked again and again and may never answer (see GuardedCall): it lives in a
/// child process, and whoever asks goes on at the deadline. One that hangs is not asked again until
/// it has answered; one that died is started anew by the next question. Not thread-safe; make it on
/// a thread that lives as long, before the process has more of them.
class GuardedReader {
 public:
  /// Forks with the first question; `read` then runs in the child, whose state lasts from one
  /// answer to the next. Text of at most 16 MiB; what it throws becomes a Failure "failed".
  explicit GuardedReader(std::function<std::string()> read) : read_(std::move(read)) {}
  GuardedReader(const GuardedReader&) = delete;
  ~GuardedReader();

  /// Sends the question, unless one is open.
  void ask();
  /// Waits at most `wait_ms` for the answer to the open question. Failures: "hung" (the question
  /// stays open, a later `take` may get its answer), "failed", "no_process".
  Result<std::string> take(int wait_ms);
  /// How long the open question has been waiting, in seconds; nothing if none is open.
  std::optional<double> waiting_s() const;

 private:
  void start();
  void stop();
  Result<std::string> answer();

  std::function<std::string()> read_;
  pid_t child_ = -1;
  int socket_ = -1;
  std::optional<double> asked_s_;
  std::string received_;
};

}  // namespace mm::health
