#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/data/collate.h"
#include "lib/data/loader_tuner.h"
#include "lib/data/pixel_pool.h"
#include "lib/data/plan_cursor.h"

namespace mm::data {

struct LoaderOptions {
  PlanOptions plan;
  int rank = 0, ranks = 1;  ///< of the data group
  /// False: another rank of the reader group (reader_group.h) reads; steps are planned and dealt as
  /// there, their micro-batches are left empty.
  bool reads = true;
  uint64_t start_step = 0;  ///< global step of the stage to begin with: all there is to resume by
  int prefetch_steps = 2;   ///< steps kept ready or in work ahead of the one in use; at least 1
  int threads = 1;          ///< that read and decode; at least 1
  /// While steps are waited for, threads and steps ahead grow up to these; 0: they stay as above.
  int max_threads = 0, max_prefetch_steps = 0;
  /// For batches of this rank that are ready or in work, one step excepted; 0: no limit.
  uint64_t memory_bytes = 0;
  /// Where pixels of micro-batches are allocated, from many threads; pinned memory with a GPU.
  /// Null: the heap. Must outlive the batches. Blocks go through a PixelPool of the loader: a batch
  /// that is destroyed gives its pixels' memory to a later one.
  std::pmr::memory_resource* pixel_memory = nullptr;
  Augmentation augmentation;
  std::chrono::seconds deadline{600};  ///< for one step's data
};

/// One step as this rank sees it.
struct LoaderStep {
  /// The whole step of all ranks: packs, totals, epoch. Its `targets` is the divisor of the loss,
  /// its packs give the sizes of every rank's micro-batches.
  PlannedStep plan;
  std::vector<std::vector<uint32_t>> dealt;  ///< [ranks]: indices into plan.packs
  std::vector<MicroBatch>
      micro_batches;         ///< ceil(packs / ranks), this rank's in order, then empty ones
  std::vector<BadRead> bad;  ///< of this rank; planned sizes kept, weight 0
  double wait_ms = 0;        ///< what `next` waited for data
};

/// Gives the steps of a stage in order, for ever, over epoch borders; threads read ahead. What it
/// yields is a pure function of (store, options.plan, augmentation, rank, ranks, step): a loader
/// started at step k yields what another yields after k steps, and for any `ranks` a step holds the
/// same samples, whatever the tuning. Memory: prefetch_steps + 1 steps of this rank. `next` is for
/// one thread.
class Loader {
 public:
  /// Throws UsageError for impossible options, and what plan_epoch throws. `store` must outlive it.
  Loader(const SampleStore& store, const LoaderOptions& options);
  /// Stops the threads; a read in progress is finished first.
  ~Loader();
  Loader(const Loader&) = delete;

  /// Blocks until the next step is whole. Rethrows what a reading thread threw (IoError); IoError
  /// past the deadline.
  LoaderStep next();
  /// The step that `next` will return.
  uint64_t position() const { return position_; }
  LoaderTuning tuning() const;

 private:
  struct Pending;
  struct Task;
  void plan_ahead();
  void read();
  void work(Task task);
  bool take(Task& task);
  void foretell(const PlannedStep& from);
  void tune(double wait_ms, std::chrono::steady_clock::time_point now);
  void add_reader();

  const SampleStore& store_;
  const LoaderOptions options_;
  const std::shared_ptr<PixelPool> pixel_pool_;  ///< batches hold it too
  PlanCursor cursor_;                            ///< of the planning thread once it runs
  std::vector<SampleSize> sizes_;
  uint64_t position_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Pending>> pending_;  ///< steps from position_ on
  std::deque<Task> tasks_;
  std::exception_ptr error_;
  bool stop_ = false;
  LoaderTuner tuner_;
  std::chrono::steady_clock::time_point last_next_ = {};
  std::vector<std::thread> threads_;
};

}  // namespace mm::data
