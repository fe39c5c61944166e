#include "lib/health/guarded_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <utility>

#include "lib/base/clock.h"

namespace mm::health {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
constexpr int kEndMs = 200;  // for a child to end by itself, or killed

double now_s() { return system_clock().monotonic_s(); }

bool send_all(int socket, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::send(socket, data, bytes, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

// A question is one byte; an answer its length and '+' with the text or '-' with what was thrown.
[[noreturn]] void serve(const std::function<std::string()>& read, int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What is open here would stay open as long as the child hangs: other readers' ends, locks.
  if (socket > 3) ::close_range(3, static_cast<unsigned>(socket) - 1, 0);
  ::close_range(static_cast<unsigned>(socket) + 1, ~0U, 0);
  // A terminal's signals are the parent's to act on; it closes the socket.
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_IGN);
  while (true) {
    char question = 0;
    const ssize_t got = ::recv(socket, &question, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ::_exit(0);
    std::string text;
    try {
      text = "+" + read();
    } catch (const std::exception& error) {
      text = std::string("-") + error.what();
    }
    const uint64_t bytes = text.size();
    if (!send_all(socket, reinterpret_cast<const char*>(&bytes), sizeof(bytes)) ||
        !send_all(socket, text.data(), text.size()))
      ::_exit(1);
  }
}

bool ended_within(pid_t child, int ms) {
  const double until_s = now_s() + 1e-3 * ms;
  while (::waitpid(child, nullptr, WNOHANG) == 0) {
    if (now_s() >= until_s) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

}  // namespace

GuardedReader::~GuardedReader() { stop(); }

void GuardedReader::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  child_ = ::fork();
  if (child_ == 0) {
    ::close(ends[0]);
    serve(read_, ends[1]);
  }
  ::close(ends[1]);
  if (child_ < 0) {
    ::close(ends[0]);
    return;
  }
  socket_ = ends[0];
}

void GuardedReader::stop() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (child_ <= 0) return;
  // One that waits for a question ends by itself.
  if (!asked_s_ && ended_within(child_, kEndMs)) {
    child_ = -1;
    return;
  }
  // A process in an uninterruptible call ignores even this and becomes init's child when we end.
  ::kill(child_, SIGKILL);
  ended_within(std::exchange(child_, -1), kEndMs);
}

void GuardedReader::ask() {
  if (asked_s_) return;
  if (child_ <= 0) start();
  received_.clear();
  asked_s_ = now_s();
  const char question = '?';
  // A dead child shows when the answer is taken.
  if (socket_ >= 0) send_all(socket_, &question, 1);
}

std::optional<double> GuardedReader::waiting_s() const {
  if (!asked_s_) return std::nullopt;
  return now_s() - *asked_s_;
}

Result<std::string> GuardedReader::answer() {
  asked_s_.reset();
  if (received_[sizeof(uint64_t)] == '+') return received_.substr(sizeof(uint64_t) + 1);
  return Failure{"failed", received_.substr(sizeof(uint64_t) + 1)};
}

Result<std::string> GuardedReader::take(int wait_ms) {
  if (!asked_s_) return Failure{"failed", "nothing was asked"};
  if (socket_ < 0) {
    asked_s_.reset();
    return Failure{"no_process", "the system gave no process to read in"};
  }
  const double until_s = now_s() + 1e-3 * wait_ms;
  std::array<char, 65536> part{};
  while (true) {
    uint64_t bytes = 0;
    if (received_.size() > sizeof(bytes)) {
      std::memcpy(&bytes, received_.data(), sizeof(bytes));
      if (bytes > kMaxBytes) break;
      if (received_.size() >= sizeof(bytes) + bytes) return answer();
    }
    const double left_s = std::max(0.0, until_s - now_s());
    struct pollfd waited {
      socket_, POLLIN, 0
    };
    if (::poll(&waited, 1, static_cast<int>(std::ceil(1000 * left_s))) <= 0) {
      if (left_s > 0) continue;
      return Failure{"hung", fmt::format("no answer for {:.1f} s", *waiting_s())};
    }
    const ssize_t got = ::recv(socket_, part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    received_.append(part.data(), static_cast<size_t>(got));
  }
  asked_s_.reset();
  stop();
  return Failure{"failed", "the probing process died"};
}

}  // namespace mm::health
