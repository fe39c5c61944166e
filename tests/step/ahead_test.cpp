#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>

#include "lib/base/error.h"
#include "lib/step/check.h"
#include "lib/step/draw.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

/// Steps of two micro-batches each; the source knows which step runs.
struct Steps final : BatchSource {
  explicit Steps(int count) {
    for (int s = 0; s < count; ++s)
      steps.push_back({toy::make_batch({.tokens = 5 + s, .images = 2}, 2 * s),
                       toy::make_batch({.tokens = 7, .images = s % 2}, 2 * s + 1)});
  }
  model::Batch load(int micro_batch) override { return steps.at(step).at(micro_batch); }
  model::Batch load_next(int micro_batch) override {
    if (on_next) on_next();
    return steps.at(step + 1).at(micro_batch);
  }
  std::vector<std::vector<model::Batch>> steps;
  size_t step = 0;
  std::function<void()> on_next;
};

struct Trainer {
  model::Model model = toy::make_model();
  BuildOptions options{.micro_batches = 2};
  Program program;
  std::unique_ptr<toy::Store> store;
  Steps source{4};
  std::unique_ptr<Executor> executor;

  Trainer(bool ahead, int pictures_at_once, const std::vector<model::ParamId>& frozen) {
    options.trainable = toy::all_but(model, frozen);
    options.frozen_ahead = ahead;
    options.pictures_at_once = pictures_at_once;
    options.buckets = toy::make_buckets(model, options.trainable, 2);
    program = build_step(model, options);
    store = std::make_unique<toy::Store>(toy::make_weights(model, 1), options.trainable,
                                         options.buckets);
    executor = std::make_unique<Executor>(model, program,
                                          Bindings{.batches = &source,
                                                   .params = store.get(),
                                                   .gradients = store.get(),
                                                   .buckets = store.get(),
                                                   .hooks = store.get()});
  }
  StepReport step(bool follows) {
    store->zero_gradients();
    const StepReport report =
        executor->run({.step = static_cast<int64_t>(source.step),
                       .global_targets = toy::count_targets(source.steps[source.step]),
                       .next_follows = follows});
    ++source.step;
    return report;
  }
};

const std::vector<model::ParamId> kFrozen = {toy::kTower, toy::kProjector};

std::vector<at::Tensor> weights_after(bool ahead, int at_once, const std::vector<bool>& follows) {
  Trainer trainer(ahead, at_once, kFrozen);
  REQUIRE(check(trainer.program).empty());
  for (bool next : follows) trainer.step(next);
  std::vector<at::Tensor> weights;
  for (int p = 0; p < toy::kParams; ++p) weights.push_back(trainer.store->get(p).detach().clone());
  return weights;
}

}  // namespace

TEST_CASE(
    "ahead: weights after four steps are bit-equal with and without; in chunks to 1e-12, products "
    "of other sizes rounding differently") {
  const auto want = weights_after(false, 0, {false, false, false, false});
  const std::vector<std::pair<bool, int>> ways = {{true, 0}, {true, 1}, {false, 1}, {false, 3}};
  for (const auto& [ahead, at_once] : ways) {
    // A step that nothing follows makes its successor begin from nothing.
    for (const std::vector<bool>& follows : {std::vector<bool>{true, true, true, false},
                                             std::vector<bool>{true, false, true, false}}) {
      const auto got = weights_after(ahead, at_once, follows);
      for (int p = 0; p < toy::kParams; ++p)
        CHECK((at_once == 0 ? at::equal(got[p], want[p])
                            : at::allclose(got[p], want[p], 1e-12, 1e-13)));
    }
  }
}

TEST_CASE("ahead: the next step's pictures are taken while this step is at work") {
  Trainer trainer(true, 0, kFrozen);
  // The ahead queue holds its first load back until the compute queue has begun a backward: were
  // they one after the other, neither would end.
  std::promise<void> backward_ran;
  std::shared_future<void> seen = backward_ran.get_future().share();
  struct Watch final : model::GradSink {
    Watch(model::GradSink& sink, std::promise<void>& ran) : sink(sink), ran(ran) {}
    void add(model::ParamId id, const at::Tensor& grad) override {
      if (!std::exchange(done, true)) ran.set_value();
      sink.add(id, grad);
    }
    model::GradSink& sink;
    std::promise<void>& ran;
    bool done = false;
  } watch(*trainer.store, backward_ran);
  std::atomic<int> loads = 0;
  trainer.source.on_next = [&] {
    CHECK(seen.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
    ++loads;
  };
  Executor executor(trainer.model, trainer.program,
                    {.batches = &trainer.source,
                     .params = trainer.store.get(),
                     .gradients = &watch,
                     .buckets = trainer.store.get(),
                     .hooks = trainer.store.get()});
  const StepReport report = executor.run(
      {.global_targets = toy::count_targets(trainer.source.steps[0]), .next_follows = true});
  CHECK(loads == 2);
  CHECK(report.ahead_ms > 0);
}

TEST_CASE("ahead: the list has loads and frozen forwards on their own queue, without waits") {
  const Trainer trainer(true, 0, kFrozen);
  CHECK(trainer.program.ahead);
  int found = 0;
  for (const Instruction& i : trainer.program.list) {
    const bool early =
        i.op == Op::kLoad || (i.op == Op::kForward && trainer.program.segments[i.segment].ahead);
    CHECK(i.ahead == early);
    CHECK((i.queue == kAheadQueue) == early);
    if (early) CHECK(i.waits.empty());
    found += early;
  }
  CHECK(found == 2 * 3);  // load, tower, projector
  CHECK(draw(trainer.program, trainer.model).find("ahead") != std::string::npos);
  // A tower that trains cannot; a frozen embedding behind it would need no pictures.
  CHECK_FALSE(Trainer(true, 0, {}).program.ahead);
  const Trainer tower_only(true, 0, {toy::kTower});
  CHECK(std::count_if(tower_only.program.segments.begin(), tower_only.program.segments.end(),
                      [](const SegmentRow& row) { return row.ahead; }) == 1);
}

TEST_CASE("ahead: an error in the next step's load ends this step, the one after starts anew") {
  Trainer trainer(true, 0, kFrozen);
  trainer.source.on_next = [] { throw IoError("shard 7 is gone"); };
  CHECK_THROWS_WITH_AS(trainer.step(true), doctest::Contains("shard 7 is gone"), IoError);
  trainer.source.on_next = nullptr;
  CHECK(trainer.step(false).updated);
}

TEST_CASE("check: what runs ahead of its input, or trains ahead, is named") {
  const Trainer trainer(true, 0, kFrozen);
  Program wrong = trainer.program;
  for (Instruction& i : wrong.list) {
    if (i.op == Op::kForward && i.segment == 0) i.ahead = false, i.queue = kComputeQueue;
  }
  REQUIRE_FALSE(check(wrong).empty());
  CHECK(check(wrong).front().text.find("ahead") != std::string::npos);
  Program queue = trainer.program;
  queue.list.front().queue = kComputeQueue;
  REQUIRE_FALSE(check(queue).empty());
  CHECK(check(queue).front().text.find("does not run load") != std::string::npos);
}
