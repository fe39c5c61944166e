#include "lib/health/disk_probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace mm::health {
namespace {

// What the child sends; plain bytes through a pipe.
struct Answer {
  int error = 0;
  struct statvfs room {};
};

// In the child: only calls that are safe after a fork of a threaded process.
[[noreturn]] void answer_and_exit(const char* path, int out) {
  Answer answer;
  if (::statvfs(path, &answer.room) != 0) answer.error = errno;
  const ssize_t put = ::write(out, &answer, sizeof(answer));
  ::_exit(put == static_cast<ssize_t>(sizeof(answer)) ? 0 : 1);
}

// Waits until the answer lies in the pipe; false at the deadline.
bool wait_for(int fd, int deadline_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline_ms);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    if (left < 0) return false;
    struct pollfd waited {
      fd, POLLIN, 0
    };
    const int ready = ::poll(&waited, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

void fill(const Answer& answer, DiskSpace& space) {
  if (answer.error != 0) {
    space.problem = std::generic_category().message(answer.error);
    return;
  }
  space.total_bytes = uint64_t{answer.room.f_blocks} * answer.room.f_frsize;
  space.free_bytes = uint64_t{answer.room.f_bavail} * answer.room.f_frsize;
  space.free_inodes = answer.room.f_favail;
  space.read_only = (answer.room.f_flag & ST_RDONLY) != 0;
}

}  // namespace

DiskSpace probe_disk(const std::filesystem::path& path, int deadline_ms) {
  DiskSpace space;
  space.path = path;
  std::array<int, 2> pipe_ends{};
  if (::pipe(pipe_ends.data()) != 0) {
    space.problem = "no pipe: " + std::generic_category().message(errno);
    return space;
  }
  const pid_t child = ::fork();
  if (child == 0) answer_and_exit(path.c_str(), pipe_ends[1]);
  ::close(pipe_ends[1]);
  Answer answer;
  if (child < 0) {
    space.problem = "no process: " + std::generic_category().message(errno);
  } else if (!wait_for(pipe_ends[0], deadline_ms)) {
    space.hung = true;
    space.problem = fmt::format("no answer within {} ms", deadline_ms);
    // A process in an uninterruptible call ignores even this and becomes init's child when we end.
    ::kill(child, SIGKILL);
  } else if (::read(pipe_ends[0], &answer, sizeof(answer)) !=
             static_cast<ssize_t>(sizeof(answer))) {
    space.problem = "the probing process died";
  } else {
    fill(answer, space);
  }
  ::close(pipe_ends[0]);
  if (child > 0) ::waitpid(child, nullptr, space.hung ? WNOHANG : 0);
  return space;
}

}  // namespace mm::health
