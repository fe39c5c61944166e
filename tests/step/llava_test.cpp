#include "lib/model/llava.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/model/eager.h"
#include "lib/step/builder.h"
#include "lib/step/check.h"
#include "lib/step/executor.h"

using namespace mm;
using namespace mm::step;

namespace {

// Two tower layers of which one runs, two decoder layers with grouped queries.
model::LlavaConfig tiny_llava() {
  model::LlavaConfig config;
  config.vision = {
      .hidden = 8, .intermediate = 16, .layers = 2, .heads = 2, .image_size = 8, .patch_size = 4};
  config.text = {.vocab = 32,
                 .hidden = 16,
                 .intermediate = 24,
                 .layers = 2,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_size = 4};
  config.image_token_index = 3;
  return config;
}

// Two samples of `length` tokens; `images` of them begin with a picture of four patches.
model::Batch make_batch(int64_t length, int64_t images, int seed) {
  const int64_t T = 2 * length, patches = 4;
  model::Batch batch;
  batch.tokens = (at::arange(T, at::kLong) * 7 + seed) % 28 + 4;
  batch.targets = (batch.tokens + 1).remainder(32);
  batch.targets.masked_fill_(at::arange(T, at::kLong).remainder(3).eq(0), -100);
  batch.positions = T > 0 ? at::arange(T, at::kLong).remainder(length) : at::arange(T, at::kLong);
  batch.cu_seqlens = T > 0 ? std::vector<int64_t>{0, length, T} : std::vector<int64_t>{0};
  batch.image_token_index =
      (at::arange(images, at::kLong).unsqueeze(1) * length + at::arange(patches, at::kLong))
          .flatten();
  batch.tokens.index_fill_(0, batch.image_token_index, 3);
  batch.pixel_values =
      at::sin(at::arange(images * 3 * 64, at::kDouble) * 0.37 + seed).view({images, 3, 8, 8});
  batch.sizes = {.tokens = T, .samples = T > 0 ? 2 : 0, .images = images, .patches = patches};
  batch.sizes.targets = batch.targets.ge(0).sum().item<int64_t>();
  return batch;
}

struct Source final : BatchSource {
  explicit Source(const std::vector<model::Batch>& from) : batches(from) {}
  model::Batch load(int micro_batch) override { return batches.at(micro_batch); }
  const std::vector<model::Batch>& batches;
};

struct NoUpdate final : UpdateHooks {
  GradNorm norm() override { return {}; }
  void clip(double) override {}
  bool update(const StepInput&, double) override { return false; }
};

std::vector<at::Tensor> initial_values(const model::Model& model) {
  const model::SimpleParams random = model::SimpleParams::random(model, 5, at::kDouble);
  std::vector<at::Tensor> values;
  for (size_t p = 0; p < model.params.size(); ++p)
    values.push_back(random.get(static_cast<int>(p)).detach());
  return values;
}

// Flags of a model of which only `parts` train.
std::vector<bool> train_only(const model::Model& model, const std::vector<model::Part>& parts) {
  std::vector<bool> flags = model::params_in_use(model);
  for (size_t p = 0; p < flags.size(); ++p) {
    if (std::find(parts.begin(), parts.end(), model.params[p].part) == parts.end())
      flags[p] = false;
  }
  return flags;
}

void expect_equal(const std::vector<model::Part>& parts) {
  const model::Model model = model::build_llava(tiny_llava());
  const std::vector<bool> trainable = train_only(model, parts);
  const std::vector<model::Batch> batches = {make_batch(9, 2, 1), make_batch(6, 0, 2),
                                             make_batch(0, 0, 3), make_batch(7, 1, 4)};
  double targets = 0;
  for (const model::Batch& batch : batches) targets += static_cast<double>(batch.sizes.targets);

  model::SimpleParams reference(model, initial_values(model), trainable);
  double loss = 0;
  for (const model::Batch& batch : batches) {
    const model::SlotValues slots =
        model::eager_train({model, reference, trainable, reference, 1 / targets}, batch);
    loss += slots[model.loss_slot].item<double>();
  }

  model::SimpleParams params(model, initial_values(model), trainable);
  BuildOptions options{.micro_batches = static_cast<int>(batches.size()), .trainable = trainable};
  options.buckets.emplace_back();
  for (size_t p = 0; p < trainable.size(); ++p) {
    if (trainable[p]) options.buckets[0].params.push_back(static_cast<int>(p));
  }
  const Program program = build_step(model, options);
  CHECK(check(program).empty());
  Source source(batches);
  NoUpdate hooks;
  Executor executor(model, program,
                    {.batches = &source, .params = &params, .gradients = &params, .hooks = &hooks});
  CHECK(executor.run({.step = 1, .global_targets = targets}).loss_sum ==
        doctest::Approx(loss).epsilon(1e-12));
  for (size_t p = 0; p < trainable.size(); ++p) {
    const at::Tensor mine = params.grad(static_cast<int>(p)),
                     theirs = reference.grad(static_cast<int>(p));
    CAPTURE(model.params[p].name);
    REQUIRE(mine.defined() == theirs.defined());
    CHECK(mine.defined() == trainable[p]);
    if (mine.defined()) CHECK(at::allclose(mine, theirs, 1e-12, 1e-13));
  }
}

}  // namespace

TEST_CASE(
    "executor: a LLaVA equals the model's own plain step, text-only and empty micro-batches among "
    "others") {
  expect_equal({model::Part::kVision, model::Part::kProjector, model::Part::kLanguage});
}

TEST_CASE("executor: a LLaVA of which one part trains equals the model's own plain step") {
  for (model::Part part : {model::Part::kVision, model::Part::kProjector, model::Part::kLanguage})
    expect_equal({part});
}
