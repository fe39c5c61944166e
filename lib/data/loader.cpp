#include "lib/data/loader.h"

#include <optional>
#include <set>
#include <utility>

#include "lib/base/error.h"

namespace mm::data {

struct Loader::Pending {
  LoaderStep step;
  std::vector<std::vector<BadRead>> bad;  ///< per micro-batch
  size_t missing = 0;                     ///< micro-batches still to read
  uint64_t bytes = 0;                     ///< of the micro-batches that were read
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

uint64_t bytes_of(const MicroBatch& batch) {
  constexpr uint64_t kColumns = 4;  // tokens, targets, positions, picture places at most
  return batch.pixels.size() + kColumns * sizeof(int32_t) * batch.tokens.size();
}

}  // namespace

Loader::Loader(const SampleStore& store, const LoaderOptions& options)
    : store_(store),
      options_(checked(options)),
      pixel_pool_(std::make_shared<PixelPool>(options.pixel_memory)),
      cursor_(store.sizes(), options.plan),
      sizes_(cursor_.sizes()),
      position_(options.start_step),
      tuner_({options_.threads, options_.prefetch_steps, options_.max_threads,
              options_.max_prefetch_steps, options_.memory_bytes}) {
  threads_.emplace_back([this] { plan_ahead(); });
  for (int i = 0; i < options_.threads; ++i) add_reader();
}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::add_reader() {
  threads_.emplace_back([this] { read(); });
}

/// Tells the store what this rank reads until the end of the epoch.
void Loader::foretell(const PlannedStep& from) {
  const uint64_t steps = cursor_.steps_in_epoch() - from.position.step_in_epoch;
  std::vector<std::vector<uint32_t>> files(steps);
  for (uint64_t i = 0; i < steps; ++i) {
    const PlannedStep step = i == 0 ? from : cursor_.at(from.global_step + i);
    const auto dealt = deal_step(step.packs, options_.ranks);
    std::set<uint32_t> needed;
    for (const uint32_t pack : dealt[static_cast<size_t>(options_.rank)]) {
      for (const uint32_t row : step.packs[pack].samples) needed.insert(store_.file_of(row));
    }
    files[i].assign(needed.begin(), needed.end());
  }
  store_.expect(from.global_step, files);
}

void Loader::plan_ahead() try {
  std::optional<uint64_t> foretold;
  for (uint64_t step = options_.start_step;; ++step) {
    auto pending = std::make_shared<Pending>();
    pending->step.plan = cursor_.at(step);
    if (options_.reads && foretold != pending->step.plan.position.epoch) {
      foretell(pending->step.plan);
      foretold = pending->step.plan.position.epoch;
    }
    const auto& packs = pending->step.plan.packs;
    pending->step.dealt = deal_step(packs, options_.ranks);
    const auto mine = options_.reads ? pending->step.dealt[static_cast<size_t>(options_.rank)]
                                     : std::vector<uint32_t>{};
    const auto slots = static_cast<size_t>(micro_batches_per_rank(packs.size(), options_.ranks));
    pending->step.micro_batches.assign(slots, empty_micro_batch(store_.pictures()));
    pending->bad.resize(slots);
    pending->missing = mine.size();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return stop_ || pending_.size() < static_cast<size_t>(tuner_.tuning().prefetch_steps);
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
  const std::shared_ptr<std::pmr::memory_resource> memory = pixel_pool_;
  Assembled assembled =
      assemble(store_, sizes_, *task.pack,
               {options_.augmentation, task.pending->step.plan.position.epoch, memory});
  const std::scoped_lock lock(mutex_);
  task.pending->bytes += bytes_of(assembled.batch);
  task.pending->step.micro_batches[task.micro_batch] = std::move(assembled.batch);
  task.pending->bad[task.micro_batch] = std::move(assembled.bad);
  if (--task.pending->missing > 0) return;  // nobody waits for less than a step
  tuner_.note_step_bytes(task.pending->bytes);
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
  const auto now = std::chrono::steady_clock::now();
  step.wait_ms = std::chrono::duration<double, std::milli>(now - begin).count();
  tune(step.wait_ms, now);
  lock.unlock();
  changed_.notify_all();
  store_.reached(position_);
  return step;
}

void Loader::tune(double wait_ms, std::chrono::steady_clock::time_point now) {
  const bool first = last_next_ == std::chrono::steady_clock::time_point{};
  const double interval_ms =
      std::chrono::duration<double, std::milli>(now - std::exchange(last_next_, now)).count();
  if (first) return;  // the first step is always waited for
  tuner_.note({wait_ms, interval_ms, !tasks_.empty()});
  while (static_cast<int>(threads_.size()) - 1 < tuner_.tuning().threads) add_reader();
}

LoaderTuning Loader::tuning() const {
  const std::scoped_lock lock(mutex_);
  return tuner_.tuning();
}

}  // namespace mm::data
