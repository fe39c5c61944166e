#pragma once
#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace mm::dist {

/// What one rank brings to a collective. The hub keeps the tensors alive until all ranks are done
/// with them.
struct HubCall {
  std::string op;  ///< operation, dtype, size and root as text; must be equal on all ranks
  at::Tensor in, out;
  std::string bytes;
};

/// The meeting point of a thread group. A collective is: post, meet, use everybody's calls, meet
/// again.
class ThreadHub {
 public:
  ThreadHub(int ranks, std::chrono::milliseconds timeout);
  int ranks() const { return static_cast<int>(calls_.size()); }

  /// Only between a rank's second `meet` and its next first one.
  void post(int rank, HubCall call) { calls_[static_cast<size_t>(rank)] = std::move(call); }
  /// Calls of all ranks; stable between the two meetings.
  const std::vector<HubCall>& calls() const { return calls_; }

  /// Blocks until every rank is here. Returns the reason (empty: none) why the group failed, now or
  /// earlier: a rank is late, has left, or called `fail`.
  [[nodiscard]] std::string meet(int rank);
  /// First reason stays. Wakes everybody.
  void fail(const std::string& reason);
  /// The rank will not come again: fatal for those who wait for it now or later.
  void leave(int rank);

 private:
  std::string missing_ranks() const;
  void fail_locked(const std::string& reason);

  const std::chrono::milliseconds timeout_;
  std::vector<HubCall> calls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> here_, left_;
  int here_count_ = 0;
  uint64_t meetings_ = 0;
  std::string failure_;
};

}  // namespace mm::dist
