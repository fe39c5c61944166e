#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace mm::step {

/// One thread that runs one job at a time, kept from step to step. The job must not throw.
class QueueThread {
 public:
  explicit QueueThread(std::function<void()> job);
  /// Waits for a running job, then ends the thread.
  ~QueueThread();
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  /// Runs the job once on the thread; it must be idle.
  void start();
  /// Returns when the job is done; at once if none was started. The job's own deadlines (those of
  /// its group) bound the wait.
  void wait();

 private:
  void loop();

  std::function<void()> job_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false, closing_ = false;
  std::thread thread_;
};

}  // namespace mm::step
