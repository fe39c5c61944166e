#include "lib/run/patient_work.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"

using namespace mm;
using namespace mm::run;
using std::chrono_literals::operator""ms;

namespace {

/// Passes a group's calls on and counts the sums, so that work can last for a number of them.
class Counted final : public dist::Group {
 public:
  explicit Counted(dist::Group& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  const std::string& name() const override { return group_.name(); }
  void all_reduce_sum(at::Tensor t) override {
    group_.all_reduce_sum(t);
    const std::scoped_lock lock(mutex_);
    ++sums_;
    changed_.notify_all();
  }
  void all_reduce_max(at::Tensor t) override { group_.all_reduce_max(t); }
  void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) override {
    group_.reduce_scatter_sum(out, in);
  }
  void all_gather(at::Tensor out, const at::Tensor& in) override { group_.all_gather(out, in); }
  void broadcast(at::Tensor t, int root) override { group_.broadcast(t, root); }
  std::vector<std::string> all_gather_bytes(const std::string& bytes) override {
    return group_.all_gather_bytes(bytes);
  }
  void barrier() override { group_.barrier(); }

  /// False if they do not come within a minute.
  bool wait_for_sums(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return sums_ >= count; });
  }

 private:
  dist::Group& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int sums_ = 0;
};

}  // namespace

TEST_CASE("work_patiently: work may take many times a collective's deadline, on any rank") {
  for (const int busy_rank : {0, 2}) {
    std::atomic<int> done = 0;
    dist::run_thread_ranks(3, {.name = "control", .timeout = 300ms}, [&](dist::Group& control) {
      Counted counted(control);
      std::function<void(const std::stop_token&)> work;
      // Ten beats of 100 ms and more: over three times the deadline.
      if (control.rank() == busy_rank) {
        work = [&](const std::stop_token&) {
          CHECK(counted.wait_for_sums(10));
          ++done;
        };
      } else if (control.rank() == 1) {
        work = [&](const std::stop_token&) { ++done; };
      }
      work_patiently(counted, work, 100ms);
      CHECK(done == 2);
      control.barrier();
    });
  }
}

TEST_CASE("work_patiently: what one rank's work throws all ranks throw; threads are as they were") {
  std::atomic<int> failures = 0;
  const int threads = at::get_num_threads();
  dist::run_thread_ranks(2, {.name = "control"}, [&](dist::Group& control) {
    const auto work = [&](const std::stop_token&) {
      if (control.rank() == 1) throw DataError("the pencil broke");
      CHECK(at::get_num_threads() == threads);
    };
    try {
      work_patiently(control, work, 1000ms);
    } catch (const Error& error) {
      CHECK(std::string(error.what()) ==
            (control.rank() == 1 ? "the pencil broke" : "rank 1: the pencil broke"));
      ++failures;
    }
    control.barrier();
  });
  CHECK(failures == 2);
}

TEST_CASE("law 6: work_patiently: a rank that works leaves when a peer is gone") {
  std::atomic<bool> asked = false, thrown = false;
  dist::run_thread_ranks(2, {.name = "control", .timeout = 300ms}, [&](dist::Group& control) {
    if (control.rank() == 1) return;
    const auto work = [&](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any changed;
      std::unique_lock lock(mutex);
      changed.wait_for(lock, stop, std::chrono::seconds(30), [] { return false; });
      asked = stop.stop_requested();
    };
    try {
      work_patiently(control, work, 50ms);
    } catch (const CommError&) {
      thrown = true;
    }
  });
  CHECK(thrown);
  CHECK(asked);
}
