#include "lib/health/guarded_call.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <exception>
#include <utility>

#include "lib/base/clock.h"

namespace mm::health {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

bool write_all(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(fd, data, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

// The first byte says how it went: '+' and the text, or '-' and what was thrown.
[[noreturn]] void answer_and_exit(const std::function<std::string()>& read, int out) {
  std::string answer;
  try {
    answer = "+" + read();
  } catch (const std::exception& error) {
    answer = std::string("-") + error.what();
  }
  ::_exit(write_all(out, answer.data(), answer.size()) ? 0 : 1);
}

enum class Wait { kReady, kLate };

Wait wait_for(int fd, double until_s) {
  while (true) {
    // Past the deadline, what lies ready still counts: several calls are asked one after another.
    const double left_s = std::max(0.0, until_s - system_clock().monotonic_s());
    struct pollfd waited {
      fd, POLLIN, 0
    };
    if (::poll(&waited, 1, static_cast<int>(std::ceil(left_s * 1000))) > 0) return Wait::kReady;
    if (left_s == 0) return Wait::kLate;
  }
}

}  // namespace

GuardedCall GuardedCall::start(const std::function<std::string()>& read) {
  GuardedCall call;
  call.start_s_ = system_clock().monotonic_s();
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return call;
  call.pipe_ = ends[0];
  call.child_ = ::fork();
  if (call.child_ == 0) {
    ::close(ends[0]);
    answer_and_exit(read, ends[1]);
  }
  ::close(ends[1]);
  return call;
}

GuardedCall::GuardedCall(GuardedCall&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      start_s_(other.start_s_) {}

GuardedCall::~GuardedCall() {
  if (pipe_ >= 0) ::close(pipe_);
  if (child_ <= 0) return;
  // A process in an uninterruptible call ignores even this and becomes init's child when we end.
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, WNOHANG);
}

Result<std::string> GuardedCall::finish(int deadline_ms) {
  if (child_ <= 0) return Failure{"no_process", "the system gave no process to read in"};
  const double until_s = start_s_ + 1e-3 * deadline_ms;
  std::string answer;
  std::array<char, 65536> part{};
  while (answer.size() < kMaxBytes) {
    if (wait_for(pipe_, until_s) == Wait::kLate)
      return Failure{"hung", fmt::format("no answer within {} ms", deadline_ms)};
    const ssize_t got = ::read(pipe_, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(part.data(), static_cast<size_t>(got));
  }
  ::waitpid(std::exchange(child_, -1), nullptr, 0);
  if (answer.empty()) return Failure{"failed", "the probing process died"};
  if (answer[0] != '+') return Failure{"failed", answer.substr(1)};
  return answer.substr(1);
}

}  // namespace mm::health
