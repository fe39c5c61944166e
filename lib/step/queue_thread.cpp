#include "lib/step/queue_thread.h"

#include <utility>

namespace mm::step {

QueueThread::QueueThread(std::function<void()> job)
    : job_(std::move(job)), thread_([this] { loop(); }) {}

QueueThread::~QueueThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void QueueThread::start() {
  {
    const std::lock_guard lock(mutex_);
    running_ = true;
  }
  changed_.notify_all();
}

void QueueThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !running_; });
}

void QueueThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return running_ || closing_; });
    if (!running_) return;
    lock.unlock();
    job_();
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace mm::step
