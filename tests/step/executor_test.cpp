#include "lib/step/executor.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

BuildOptions options_for(const model::Model& model, int micro_batches, int data_ranks = 1) {
  BuildOptions options{.micro_batches = micro_batches,
                       .trainable = toy::all_but(model, {}),
                       .data_ranks = data_ranks};
  options.buckets = toy::make_buckets(model, options.trainable, 1);
  return options;
}

std::vector<model::Batch> equal_batches(int count) {
  return std::vector<model::Batch>(count, toy::make_batch({}, 5));
}

// Claims two ranks; the first bucket's reduction ends only after `opens` was called.
class GatedGroup final : public dist::Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const std::string& name() const override { return name_; }
  void all_reduce_sum(at::Tensor tensor) override {
    threads.push_back(std::this_thread::get_id());
    std::unique_lock lock(mutex_);
    if (tensor.numel() > 1)
      in_time &= changed_.wait_for(lock, std::chrono::seconds(20), [&] { return open_; });
  }
  void all_reduce_max(at::Tensor) override {}
  void reduce_scatter_sum(at::Tensor, const at::Tensor&) override {}
  void all_gather(at::Tensor, const at::Tensor&) override {}
  void broadcast(at::Tensor, int) override {}
  std::vector<std::string> all_gather_bytes(const std::string& bytes) override {
    return {bytes, bytes};
  }
  void barrier() override {}
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool in_time = true;
  std::vector<std::thread::id> threads;

 private:
  std::string name_ = "gated";
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Opens the gate when the tower's gradient, the last of the step, arrives.
class OpeningSink final : public model::GradSink {
 public:
  OpeningSink(model::GradSink& inner, GatedGroup& gate) : inner_(inner), gate_(gate) {}
  void add(model::ParamId id, const at::Tensor& grad) override {
    inner_.add(id, grad);
    if (id == toy::kTower) gate_.open();
  }

 private:
  model::GradSink& inner_;
  GatedGroup& gate_;
};

}  // namespace

TEST_CASE("executor: reductions run on one other thread while the backward goes on") {
  const model::Model model = toy::make_model();
  const BuildOptions options = options_for(model, 1, 2);
  const Program program = build_step(model, options);
  toy::Store store(toy::make_weights(model, 1), options.trainable, options.buckets);
  toy::Source source(equal_batches(1));
  GatedGroup group;
  OpeningSink sink(store, group);
  Executor executor(model, program,
                    {.batches = &source,
                     .params = &store,
                     .gradients = &sink,
                     .buckets = &store,
                     .hooks = &store,
                     .data = &group});
  executor.run({.step = 1, .global_targets = 4});
  executor.run({.step = 2, .global_targets = 4});
  CHECK(group.in_time);
  REQUIRE(group.threads.size() == 2 * (options.buckets.size() + 1));
  for (std::thread::id id : group.threads) {
    CHECK((id == group.threads[0]));
    CHECK((id != std::this_thread::get_id()));
  }
}

TEST_CASE("executor: slots of one micro-batch are held at a time") {
  const model::Model model = toy::make_model();
  std::vector<int64_t> peaks;
  for (int micro_batches : {1, 4}) {
    toy::Rank rank(model, options_for(model, micro_batches), toy::make_weights(model, 1),
                   equal_batches(micro_batches), nullptr);
    peaks.push_back(rank.step(16).peak_slot_bytes);
  }
  CHECK(peaks[0] > 0);
  CHECK(peaks[0] == peaks[1]);
}

TEST_CASE(
    "executor: a run changes nothing that a second run with the same gradients at zero would see") {
  const model::Model model = toy::make_model();
  toy::Rank rank(model, options_for(model, 2), toy::make_weights(model, 1), equal_batches(2),
                 nullptr);
  rank.store.learning_rate = 0;
  const StepReport first = rank.step(8);
  const at::Tensor gradient = rank.store.gradient(toy::kTower).clone();
  rank.store.zero_gradients();
  const StepReport second = rank.step(8);
  CHECK(first.loss_sum == second.loss_sum);
  CHECK(first.grad_norm == second.grad_norm);
  CHECK(at::equal(gradient, rank.store.gradient(toy::kTower)));
}

TEST_CASE(
    "executor: a forward-only program hands out losses and logits and needs neither sink nor "
    "hooks") {
  const model::Model model = toy::make_model();
  const Program program = build_step(model, {.micro_batches = 2, .forward_only = true});
  toy::Store store(toy::make_weights(model, 1), toy::all_but(model, {}), {});
  model::Batch wanted = toy::make_batch({}, 5);
  wanted.want_logits = true;
  toy::Source source({wanted, toy::make_batch({}, 6)});
  double sum = 0;
  std::vector<bool> has_logits;
  Executor executor(
      model, program,
      {.batches = &source,
       .params = &store,
       .on_loss = [&](int, const model::Batch&, const at::Tensor& loss, const at::Tensor& logits) {
         sum += loss.item<double>();
         has_logits.push_back(logits.defined());
         CHECK_FALSE(loss.requires_grad());
       }});
  const StepReport report = executor.run({.step = 0, .global_targets = 8});
  CHECK(report.loss_sum == sum);
  CHECK_FALSE(report.updated);
  CHECK(has_logits == std::vector<bool>{true, false});
}

TEST_CASE("executor: the caller's grad mode neither matters nor changes") {
  const model::Model model = toy::make_model();
  toy::Rank rank(model, options_for(model, 1), toy::make_weights(model, 1), equal_batches(1),
                 nullptr);
  const double with = rank.step(4).grad_norm;
  CHECK(at::GradMode::is_enabled());
  toy::Rank other(model, options_for(model, 1), toy::make_weights(model, 1), equal_batches(1),
                  nullptr);
  const at::NoGradGuard no_grad;
  CHECK(other.step(4).grad_norm == with);
  CHECK(with > 0);
}

TEST_CASE("executor: the report's times add up") {
  const model::Model model = toy::make_model();
  toy::Rank rank(model, options_for(model, 2), toy::make_weights(model, 1), equal_batches(2),
                 nullptr);
  const StepReport report = rank.step(8);
  double sum = 0;
  for (double ms : report.op_ms) sum += ms;
  CHECK(sum == doctest::Approx(report.compute_busy_ms));
  CHECK(report.compute_busy_ms <= report.wall_ms);
  CHECK(report.exposed_comm_ms == 0);
  CHECK(report.op_ms[static_cast<size_t>(Op::kBackward)] > 0);
}
