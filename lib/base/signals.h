#pragma once
#include <signal.h>

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

namespace mm {

/// While it lives, the given signals are counted instead of ending the process; then the former
/// actions return. System calls are not restarted, so a blocked wait wakes with EINTR. At most one
/// object at a time (InternalError); construct and destroy on the main thread, ask from any.
class StopSignals {
 public:
  explicit StopSignals(std::initializer_list<int> signals = {SIGTERM, SIGINT, SIGUSR1});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  /// Did any of them arrive?
  bool requested() const { return total() > 0; }
  /// How many arrived so far; a second one during a save is seen here and does no harm.
  int total() const;
  int count(int signal) const;

 private:
  struct Saved {
    int signal;
    struct sigaction action;
  };
  std::vector<Saved> saved_;
};

/// "SIGKILL"; "signal 77" for one without a name.
std::string signal_name(int signal);

}  // namespace mm
