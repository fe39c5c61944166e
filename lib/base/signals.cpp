#include "lib/base/signals.h"

#include <fmt/format.h>
#include <string.h>

#include <atomic>

#include "lib/base/error.h"

namespace mm {
namespace {

constexpr int kSignalCount = 65;

// A handler has no argument of ours: this is the one state of the process that cannot be passed in.
std::array<std::atomic<int>, kSignalCount> g_counts;
std::atomic<bool> g_installed{false};
static_assert(std::atomic<int>::is_always_lock_free, "must be safe inside a signal handler");

extern "C" void count_signal(int signal) { ++g_counts[static_cast<size_t>(signal)]; }

}  // namespace

StopSignals::StopSignals(std::initializer_list<int> signals) {
  MM_CHECK(!g_installed.exchange(true), "a second StopSignals while one lives");
  for (auto& count : g_counts) count = 0;
  for (const int signal : signals) {
    struct sigaction action {};
    action.sa_handler = count_signal;
    ::sigemptyset(&action.sa_mask);
    Saved saved{signal, {}};
    ::sigaction(signal, &action, &saved.action);
    saved_.push_back(saved);
  }
}

StopSignals::~StopSignals() {
  for (const Saved& saved : saved_) ::sigaction(saved.signal, &saved.action, nullptr);
  g_installed = false;
}

int StopSignals::total() const {
  int sum = 0;
  for (const Saved& saved : saved_) sum += count(saved.signal);
  return sum;
}

int StopSignals::count(int signal) const { return g_counts.at(static_cast<size_t>(signal)).load(); }

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace mm
