#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/group.h"

namespace mm::dist {

struct ThreadGroupOptions {
  std::string name = "data";
  /// How long a call waits for the slowest rank.
  std::chrono::milliseconds timeout{60'000};
};

/// `ranks` groups that meet in this process's memory; use each from one thread. Every dtype that
/// ATen adds, sums in rank order. What the ranks call is compared: another operation, size, dtype
/// or root throws CommError on all of them. A rank that aborts or destroys its group frees the
/// ranks that wait for it with CommError. Result[r] is rank r's.
std::vector<std::unique_ptr<Group>> make_thread_groups(int ranks,
                                                       const ThreadGroupOptions& options = {});

/// Runs `body` on `ranks` threads, each with its own group, and joins them. The first exception of
/// any rank is rethrown; the others are freed by it.
void run_thread_ranks(int ranks, const ThreadGroupOptions& options,
                      const std::function<void(Group&)>& body);

}  // namespace mm::dist
