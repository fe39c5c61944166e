#include "lib/dist/work_wait.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mm::dist {

void WorkWait::finish(const std::vector<c10::intrusive_ptr<c10d::Work>>& works) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  for (const auto& work : works) {
    const auto future = work->getFuture();
    future->addCallback([shared = shared_](c10::ivalue::Future&) {
      const std::scoped_lock lock(shared->mutex);
      shared->changed.notify_all();
    });
    std::unique_lock lock(shared_->mutex);
    const bool ended = shared_->changed.wait_until(
        lock, deadline, [&] { return future->completed() || !shared_->aborted.empty(); });
    if (!future->completed()) {
      throw std::runtime_error(ended ? shared_->aborted
                                     : fmt::format("not done within {} ms", timeout_.count()));
    }
    lock.unlock();
    work->wait();
  }
}

void WorkWait::abort(const std::string& reason) {
  const std::scoped_lock lock(shared_->mutex);
  shared_->aborted = reason;
  shared_->changed.notify_all();
}

}  // namespace mm::dist
