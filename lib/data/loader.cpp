#include "lib/data/loader.h"

#include <utility>

#include "lib/base/error.h"

namespace mm::data {

struct Loader::Pending {
  LoaderStep step;
  std::vector<std::vector<BadRead>> bad;  ///< per micro-batch
  size_t missing = 0;                     ///< micro-batches still to read
};

struct Loader::Task {
  std::shared_ptr<Pending> pending;
  size_t micro_batch = 0;
  const Pack* pack = nullptr;  ///< of pending->step.plan
};

namespace {

const LoaderOptions& checked(const LoaderOptions& options) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    throw UsageError("rank {} of {} data ranks is impossible", options.rank, options.ranks);
  }
  if (options.prefetch_steps < 1) {
    throw UsageError("prefetch is {} steps; it must be at least 1", options.prefetch_steps);
  }
  if (options.threads < 1) {
    throw UsageError("{} loader threads; there must be at least 1", options.threads);
  }
  check(options.augmentation);
  return options;
}

}  // namespace

Loader::Loader(const SampleStore& store, const LoaderOptions& options)
    : store_(store),
      options_(checked(options)),
      cursor_(store.sizes(), options.plan),
      sizes_(cursor_.sizes()),
      position_(options.start_step) {
  threads_.emplace_back([this] { plan_ahead(); });
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { read(); });
}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::plan_ahead() try {
  for (uint64_t step = options_.start_step;; ++step) {
    auto pending = std::make_shared<Pending>();
    pending->step.plan = cursor_.at(step);
    const auto& packs = pending->step.plan.packs;
    pending->step.dealt = deal_step(packs, options_.ranks);
    const auto& mine = pending->step.dealt[static_cast<size_t>(options_.rank)];
    const auto slots = static_cast<size_t>(micro_batches_per_rank(packs.size(), options_.ranks));
    pending->step.micro_batches.assign(slots, empty_micro_batch(store_.pictures()));
    pending->bad.resize(slots);
    pending->missing = mine.size();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return stop_ || pending_.size() < static_cast<size_t>(options_.prefetch_steps);
    });
    if (stop_) return;
    pending_.push_back(pending);
    for (size_t i = 0; i < mine.size(); ++i) tasks_.push_back({pending, i, &packs[mine[i]]});
    changed_.notify_all();
  }
} catch (...) {
  const std::scoped_lock lock(mutex_);
  error_ = std::current_exception();
  changed_.notify_all();
}

bool Loader::take(Task& task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
  if (stop_) return false;
  task = std::move(tasks_.front());
  tasks_.pop_front();
  return true;
}

void Loader::read() try {
  for (Task task; take(task);) work(std::move(task));
} catch (...) {
  const std::scoped_lock lock(mutex_);
  error_ = std::current_exception();
  changed_.notify_all();
}

void Loader::work(Task task) {
  Assembled assembled = assemble(store_, sizes_, *task.pack, options_.augmentation,
                                 task.pending->step.plan.position.epoch);
  const std::scoped_lock lock(mutex_);
  task.pending->step.micro_batches[task.micro_batch] = std::move(assembled.batch);
  task.pending->bad[task.micro_batch] = std::move(assembled.bad);
  --task.pending->missing;
  changed_.notify_all();
}

LoaderStep Loader::next() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const bool arrived = changed_.wait_for(lock, options_.deadline, [&] {
    return error_ || (!pending_.empty() && pending_.front()->missing == 0);
  });
  if (error_) std::rethrow_exception(error_);
  if (!arrived) {
    throw IoError("loader: the data of step {} did not arrive within {} s; is the storage alive?",
                  position_, options_.deadline.count());
  }
  LoaderStep step = std::move(pending_.front()->step);
  for (auto& bad : pending_.front()->bad) {
    step.bad.insert(step.bad.end(), std::make_move_iterator(bad.begin()),
                    std::make_move_iterator(bad.end()));
  }
  pending_.pop_front();
  ++position_;
  lock.unlock();
  changed_.notify_all();
  step.wait_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return step;
}

}  // namespace mm::data
