#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace mm::dist {

/// Waits for the backend's asynchronous works with a deadline and a way out: c10d itself can free a
/// blocked caller only by its timeout or its peers' exit.
class WorkWait {
 public:
  explicit WorkWait(std::chrono::milliseconds timeout)
      : timeout_(timeout), shared_(std::make_shared<Shared>()) {}

  /// Returns when all are done. Throws what a work failed with; std::runtime_error at the deadline
  /// or with abort's reason, and then the works live on in the backend, which holds their tensors.
  void finish(const std::vector<c10::intrusive_ptr<c10d::Work>>& works);
  /// Frees `finish`, now and for ever. From any thread.
  void abort(const std::string& reason);
  bool aborted() const {
    const std::scoped_lock lock(shared_->mutex);
    return !shared_->aborted.empty();
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::string aborted;
  };

  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<Shared> shared_;  ///< callbacks of works may outlive this object
};

}  // namespace mm::dist
