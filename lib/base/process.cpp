#include "lib/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/signals.h"

namespace mm {
namespace {

constexpr std::chrono::milliseconds kPollInterval{5};
constexpr int kCannotExec = 127;
constexpr int kUnknownCode = 255;

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::map<std::string, std::string> variables;
  const auto put = [&](const std::string& item) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos) variables[item.substr(0, equals)] = item;
  };
  for (const std::string& item : env::all()) put(item);
  for (const std::string& item : changes) put(item);
  std::vector<std::string> merged;
  for (auto& [name, item] : variables) merged.push_back(std::move(item));
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// All that the child needs between fork and exec, made before: there only async-signal-safe calls
// are allowed.
struct ChildSide {
  char** argv;
  char** environment;
  int input;
  int output;  // -1: inherited
  int inherit_fd;
  int report;  // errno goes here if exec fails; closed by a successful one
  pid_t parent;

  [[noreturn]] void run() const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kCannotExec);  // it died before prctl
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(input, STDIN_FILENO);
    if (output >= 0) {
      ::dup2(output, STDOUT_FILENO);
      ::dup2(output, STDERR_FILENO);
    }
    if (inherit_fd >= 0) ::fcntl(inherit_fd, F_SETFD, 0);
    ::execvpe(argv[0], argv, environment);
    const int code = errno;
    if (::write(report, &code, sizeof(code)) < 0) ::_exit(kCannotExec + 1);
    ::_exit(kCannotExec);
  }
};

// The errno that exec failed with, or 0.
int read_report(int fd) {
  int code = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd, &code, sizeof(code));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(code) ? code : 0;
}

}  // namespace

std::string ExitStatus::text() const {
  return signal != 0 ? signal_name(signal) : fmt::format("exit code {}", code);
}

Child Child::spawn(const SpawnOptions& options) {
  if (options.command.empty()) throw UsageError("no command to run");
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> variables = merged_environment(options.environment);
  std::vector<char*> argv = pointers(arguments);
  std::vector<char*> environment = pointers(variables);
  const File input = File::open_read("/dev/null");
  std::optional<File> output;
  if (!options.output.empty()) output = File::create(options.output, /*append=*/true);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) {
    throw IoError("cannot make a pipe: {}", std::generic_category().message(errno));
  }
  const ChildSide side{argv.data(),        environment.data(),
                       input.descriptor(), output ? output->descriptor() : -1,
                       options.inherit_fd, report[1],
                       ::getpid()};
  const pid_t pid = ::fork();
  if (pid == 0) side.run();
  const int fork_error = errno;
  ::close(report[1]);
  const int exec_error = pid > 0 ? read_report(report[0]) : 0;
  ::close(report[0]);
  if (pid < 0) throw IoError("cannot fork: {}", std::generic_category().message(fork_error));
  Child child(pid);
  if (exec_error != 0) {
    throw UsageError("{}: cannot run: {}", options.command[0],
                     std::generic_category().message(exec_error));
  }
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(std::move(other.status_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

Child::~Child() {
  if (pid_ < 0 || status_) return;
  signal(SIGKILL);
  wait();
}

std::optional<ExitStatus> Child::poll() {
  if (status_ || pid_ < 0) return status_;
  siginfo_t info{};
  const int failed = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (failed != 0 && errno == ECHILD) {
    // Somebody else reaped it (SIGCHLD ignored?): waiting on would be for ever.
    status_ = ExitStatus{kUnknownCode, 0};
    return status_;
  }
  if (failed != 0 || info.si_pid == 0) return std::nullopt;
  // The unreaped leader keeps the group's number from being given away, so this cannot hit
  // strangers.
  ::kill(-pid_, SIGKILL);
  int raw = 0;
  ::waitpid(pid_, &raw, 0);
  status_ = WIFSIGNALED(raw) ? ExitStatus{-1, WTERMSIG(raw)} : ExitStatus{WEXITSTATUS(raw), 0};
  return status_;
}

ExitStatus Child::wait() {
  siginfo_t info{};
  while (!poll()) {
    // EINTR, and being polled too early, both just go round again.
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  return *status_;
}

std::optional<ExitStatus> Child::wait_for(double seconds) {
  const double deadline_s = system_clock().monotonic_s() + seconds;
  while (!poll() && system_clock().monotonic_s() < deadline_s) {
    std::this_thread::sleep_for(kPollInterval);
  }
  return status_;
}

void Child::signal(int number) {
  if (pid_ > 0 && !status_) ::kill(-pid_, number);
}

}  // namespace mm
