#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

BuildOptions options_for(const model::Model& model, int micro_batches, int data_ranks) {
  BuildOptions options{.micro_batches = micro_batches,
                       .trainable = toy::all_but(model, {}),
                       .data_ranks = data_ranks};
  options.buckets = toy::make_buckets(model, options.trainable, 2);
  return options;
}

class FailingSource final : public BatchSource {
 public:
  explicit FailingSource(bool fails) : fails(fails) {}
  model::Batch load(int micro_batch) override {
    if (fails && micro_batch == 1) throw DataError("shard 3: checksum mismatch");
    return toy::make_batch({}, micro_batch);
  }
  bool fails;
};

// One rank's failing step: the error's text and exit code.
struct Outcome {
  std::string text;
  ExitCode code = ExitCode::kDone;
};
Outcome outcome_of(Executor& executor) {
  try {
    executor.run({.step = 12, .global_targets = 8});
  } catch (const Error& error) {
    return {error.what(), error.exit_code()};
  }
  return {};
}

// The model with the head's forward replaced.
template <typename Forward>
model::Model with_head(Forward forward) {
  model::Model model = toy::make_model();
  std::get<model::Segment>(model.blocks.back().steps[0]).forward = forward;
  return model;
}

Outcome run_alone(const model::Model& model) {
  toy::Rank rank(model, options_for(model, 1, 1), toy::make_weights(model, 1),
                 {toy::make_batch({}, 1)}, nullptr);
  return outcome_of(*rank.executor);
}

}  // namespace

TEST_CASE(
    "executor: an error of the loader says step, operation and micro-batch, and the next step may "
    "run") {
  const model::Model model = toy::make_model();
  const BuildOptions options = options_for(model, 2, 1);
  const Program program = build_step(model, options);
  toy::Store store(toy::make_weights(model, 1), options.trainable, options.buckets);
  FailingSource source(true);
  Executor executor(model, program,
                    {.batches = &source, .params = &store, .gradients = &store, .hooks = &store});
  const Outcome outcome = outcome_of(executor);
  CHECK(outcome.text == "step 12: load, micro-batch 1: shard 3: checksum mismatch");
  CHECK(outcome.code == ExitCode::kDataInvalid);
  CHECK(store.updates == 0);
  source.fails = false;
  CHECK(executor.run({.step = 13, .global_targets = 8}).updated);
}

TEST_CASE("executor: when one rank fails, all ranks return in time and none updates") {
  const model::Model model = toy::make_model();
  const BuildOptions options = options_for(model, 2, 3);
  std::vector<Outcome> outcomes(3);
  std::atomic<int> updates = 0;
  const auto start = std::chrono::steady_clock::now();
  dist::run_thread_ranks(3, {.timeout = std::chrono::seconds(60)}, [&](dist::Group& group) {
    const Program program = build_step(model, options);
    toy::Store store(toy::make_weights(model, 1), options.trainable, options.buckets);
    FailingSource source(group.rank() == 1);
    Executor executor(model, program,
                      {.batches = &source,
                       .params = &store,
                       .gradients = &store,
                       .buckets = &store,
                       .hooks = &store,
                       .data = &group});
    outcomes[group.rank()] = outcome_of(executor);
    updates += store.updates;
  });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(updates == 0);
  CHECK(outcomes[1].code == ExitCode::kDataInvalid);
  for (int r : {0, 2}) {
    CAPTURE(outcomes[r].text);
    CHECK(outcomes[r].code == ExitCode::kPeerLost);
    CHECK(outcomes[r].text.starts_with("step 12: reduce of "));
  }
}

TEST_CASE("executor: an error inside LibTorch names the block and carries no stack trace") {
  const Outcome outcome =
      run_alone(with_head([](const model::SegmentContext&, std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{at::matmul(in[0], at::ones({3, 3}, at::kDouble)).sum(),
                                       at::Tensor()};
      }));
  CHECK(outcome.code == ExitCode::kInternal);
  CHECK(outcome.text.starts_with("step 12: forward of block head, micro-batch 0: "));
  CHECK(outcome.text.find("frame #") == std::string::npos);
}

TEST_CASE("executor: a segment that reads a parameter it does not declare is refused") {
  const Outcome outcome =
      run_alone(with_head([](const model::SegmentContext& c, std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{at::linear(in[0], c.params.get(toy::kLayer2)).sum(),
                                       at::Tensor()};
      }));
  CHECK(outcome.text.find("does not declare") != std::string::npos);
}

TEST_CASE(
    "executor: an output that should carry a gradient and is a constant is refused, unless "
    "pictures or tokens are missing") {
  const model::Model model =
      with_head([](const model::SegmentContext&, std::span<const at::Tensor>) {
        return std::vector<at::Tensor>{at::zeros({}, at::kDouble), at::Tensor()};
      });
  CHECK(run_alone(model).text.find("slot loss should carry a gradient") != std::string::npos);
  toy::Rank rank(model, options_for(model, 1, 1), toy::make_weights(model, 1),
                 {toy::make_batch({.tokens = 0, .images = 0}, 1)}, nullptr);
  CHECK(rank.step(4).grad_norm == 0);
}

TEST_CASE("executor: a segment with too few outputs is refused") {
  const Outcome outcome =
      run_alone(with_head([](const model::SegmentContext&, std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{in[0].sum()};
      }));
  CHECK(outcome.text.find("segment head returned 1 tensors, it declares 2") != std::string::npos);
}

TEST_CASE("executor: missing bindings and a group of another size are refused at once") {
  const model::Model model = toy::make_model();
  const BuildOptions options = options_for(model, 1, 2);
  const Program program = build_step(model, options);
  toy::Store store(toy::make_weights(model, 1), options.trainable, options.buckets);
  toy::Source source({toy::make_batch({}, 1)});
  CHECK_THROWS_AS(Executor(model, program, {}), InternalError);
  CHECK_THROWS_AS(Executor(model, program, {.batches = &source, .params = &store}), InternalError);
  CHECK_THROWS_AS(Executor(model, program,
                           {.batches = &source,
                            .params = &store,
                            .gradients = &store,
                            .buckets = &store,
                            .hooks = &store}),
                  InternalError);
}
