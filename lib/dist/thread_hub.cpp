#include "lib/dist/thread_hub.h"

#include <fmt/format.h>

#include <algorithm>

namespace mm::dist {

ThreadHub::ThreadHub(int ranks, std::chrono::milliseconds timeout)
    : timeout_(timeout),
      calls_(static_cast<size_t>(ranks)),
      here_(static_cast<size_t>(ranks), false),
      left_(static_cast<size_t>(ranks), false) {}

std::string ThreadHub::meet(int rank) {
  std::unique_lock lock(mutex_);
  if (!failure_.empty()) return failure_;
  const uint64_t meeting = meetings_;
  here_[static_cast<size_t>(rank)] = true;
  ++here_count_;
  for (size_t r = 0; r < left_.size(); ++r) {
    if (left_[r] && !here_[r]) fail_locked(fmt::format("rank {} has left the group", r));
  }
  if (here_count_ == ranks() && failure_.empty()) {
    here_count_ = 0;
    std::fill(here_.begin(), here_.end(), false);
    ++meetings_;
    changed_.notify_all();
    return {};
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  changed_.wait_until(lock, deadline, [&] { return meetings_ != meeting || !failure_.empty(); });
  if (meetings_ != meeting) return {};
  if (failure_.empty()) {
    fail_locked(
        fmt::format("rank {} did not come within {} ms", missing_ranks(), timeout_.count()));
  }
  return failure_;
}

void ThreadHub::fail(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  fail_locked(reason);
}

void ThreadHub::leave(int rank) {
  const std::scoped_lock lock(mutex_);
  left_[static_cast<size_t>(rank)] = true;
  if (here_count_ > 0 && !here_[static_cast<size_t>(rank)]) {
    fail_locked(fmt::format("rank {} has left the group", rank));
  }
}

std::string ThreadHub::missing_ranks() const {
  std::string text;
  for (size_t r = 0; r < here_.size(); ++r) {
    if (!here_[r]) text += fmt::format("{}{}", text.empty() ? "" : ", ", r);
  }
  return text;
}

void ThreadHub::fail_locked(const std::string& reason) {
  if (failure_.empty()) failure_ = reason;
  changed_.notify_all();
}

}  // namespace mm::dist
