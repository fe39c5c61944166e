#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mm {

/// How a process ended: by exit (signal 0) or by a signal (code -1).
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool ok() const { return signal == 0 && code == 0; }
  /// "exit code 3", "SIGKILL".
  std::string text() const;
};

struct SpawnOptions {
  std::vector<std::string> command;  ///< program (looked up in PATH) and its arguments
  std::vector<std::string>
      environment;  ///< NAME=value, on top of this process's own; "NAME=" counts as not set
  std::filesystem::path output;  ///< both streams are appended here; empty: inherited
  int inherit_fd = -1;           ///< stays open in the child under the same number
};

/// A child process that leads its own process group, reads /dev/null, and is killed by the kernel
/// (SIGKILL) when the thread that spawned it ends: spawn from a thread that lives as long as the
/// child should. When it ends, what is left of its group is killed. The destructor kills a running
/// one. One thread at a time.
class Child {
 public:
  /// Throws UsageError if the program cannot be run, IoError for the output file or when the system
  /// is out of processes.
  static Child spawn(const SpawnOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  /// Nothing while it runs; then always the same status. Does not block.
  std::optional<ExitStatus> poll();
  ExitStatus wait();
  /// Waits at most `seconds`; polls every few milliseconds.
  std::optional<ExitStatus> wait_for(double seconds);
  /// To the whole group; nothing happens if it has ended.
  void signal(int number);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

}  // namespace mm
