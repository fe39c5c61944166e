#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/dist/thread_group.h"
#include "lib/model/eager.h"
#include "lib/model/llava.h"
#include "lib/step/check.h"
#include "tests/step/live_bytes.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

using Kind = Recompute::Kind;

/// Two decoder layers behind one tower layer, big enough that activations outweigh the rest.
struct Llava {
  model::LlavaConfig config;
  model::Model model;
  std::vector<model::Batch> batches;
  std::vector<at::Tensor> weights;

  explicit Llava(int64_t tokens = 24) {
    config.vision = {
        .hidden = 8, .intermediate = 16, .layers = 3, .heads = 2, .image_size = 8, .patch_size = 4};
    config.text = {.vocab = 32,
                   .hidden = 16,
                   .intermediate = 64,
                   .layers = 3,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_size = 4};
    config.image_token_index = 3;
    model = model::build_llava(config);
    for (int seed : {1, 2}) batches.push_back(batch(tokens, seed));
    const model::SimpleParams random = model::SimpleParams::random(model, 5, at::kDouble);
    for (size_t p = 0; p < model.params.size(); ++p)
      weights.push_back(random.get(static_cast<int>(p)).detach() * 10);
  }

  static model::Batch batch(int64_t tokens, int seed) {
    model::Batch b;
    b.tokens = (at::arange(tokens, at::kLong) * 7 + seed) % 28 + 4;
    b.targets = (b.tokens + 1).remainder(32);
    b.positions = at::arange(tokens, at::kLong);
    b.cu_seqlens = {0, tokens};
    b.image_token_index = at::arange(4, at::kLong);
    b.tokens.index_fill_(0, b.image_token_index, 3);
    b.pixel_values = at::sin(at::arange(3 * 64, at::kDouble) * 0.37 + seed).view({1, 3, 8, 8});
    b.sizes = {.tokens = tokens, .samples = 1, .images = 1, .patches = 4, .targets = tokens};
    return b;
  }

  std::vector<bool> all_but_vision() const {
    std::vector<bool> flags = model::params_in_use(model);
    for (size_t p = 0; p < flags.size(); ++p)
      flags[p] = flags[p] && model.params[p].part != model::Part::kVision;
    return flags;
  }

  BuildOptions options(const Recompute& recompute, const std::vector<bool>& trainable) const {
    BuildOptions options{.micro_batches = static_cast<int>(batches.size()),
                         .trainable = trainable,
                         .recompute = recompute};
    options.buckets = toy::make_buckets(model, trainable, 5);
    return options;
  }
};

struct Outcome {
  std::vector<at::Tensor> gradients;
  double loss = 0;
  int64_t peak_bytes = 0;
};

Outcome run(const Llava& llava, const Recompute& recompute, const std::vector<bool>& trainable) {
  toy::Rank rank(llava.model, llava.options(recompute, trainable), llava.weights, llava.batches,
                 nullptr);
  REQUIRE(check(rank.program).empty());
  Outcome outcome;
  outcome.peak_bytes =
      test::peak_of([&] { outcome.loss = rank.step(toy::count_targets(llava.batches)).loss_sum; });
  for (size_t p = 0; p < llava.weights.size(); ++p)
    outcome.gradients.push_back(rank.store.gradient(static_cast<int>(p)));
  return outcome;
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  CHECK(a.loss == b.loss);
  for (size_t p = 0; p < a.gradients.size(); ++p) {
    REQUIRE(a.gradients[p].defined() == b.gradients[p].defined());
    if (a.gradients[p].defined()) CHECK(at::equal(a.gradients[p], b.gradients[p]));
  }
}

const std::vector<Recompute> kWays = {{Kind::kBlock, {}},
                                      {Kind::kSelective, {"mlp"}},
                                      {Kind::kSelective, {"attention"}},
                                      {Kind::kSelective, {"attention", "mlp"}}};

int count(const Program& program, Op op) {
  int found = 0;
  for (const Instruction& i : program.list) found += i.op == op;
  return found;
}

}  // namespace

TEST_CASE("recompute: gradients and loss are bit-equal with and without, whole and selective") {
  const Llava llava;
  for (const std::vector<bool>& trainable :
       {model::params_in_use(llava.model), llava.all_but_vision()}) {
    const Outcome kept = run(llava, {}, trainable);
    for (const Recompute& way : kWays) expect_same_bits(kept, run(llava, way, trainable));
  }
}

TEST_CASE("recompute: the peak of live bytes falls, most by whole blocks") {
  const Llava llava(400);
  const std::vector<bool> trainable = llava.all_but_vision();
  const int64_t kept = run(llava, {}, trainable).peak_bytes;
  const int64_t mlp = run(llava, {Kind::kSelective, {"mlp"}}, trainable).peak_bytes;
  const int64_t block = run(llava, {Kind::kBlock, {}}, trainable).peak_bytes;
  CAPTURE(kept);
  CAPTURE(mlp);
  CAPTURE(block);
  CHECK(mlp < kept * 8 / 10);
  CHECK(block < mlp);
}

TEST_CASE("recompute: frozen blocks and the head are never run again") {
  const Llava llava;
  const Program program =
      build_step(llava.model, llava.options({Kind::kBlock, {}}, llava.all_but_vision()));
  for (const SegmentRow& row : program.segments) {
    if (!row.has_backward || row.loss >= 0) CHECK_FALSE(row.recompute);
  }
  // Projector, embeddings and three decoder layers, twice.
  CHECK(count(program, Op::kRecompute) == 10);
  for (const Instruction& i : program.list) {
    if (i.op == Op::kRecompute) CHECK(llava.model.blocks[i.block].part != model::Part::kVision);
  }
  CHECK(count(build_step(llava.model, llava.options({}, llava.all_but_vision())), Op::kRecompute) ==
        0);
}

TEST_CASE(
    "recompute: selective cuts layers of tower and decoder in two rows, whole and frozen blocks "
    "stay one") {
  const Llava llava;
  const auto trainable = model::params_in_use(llava.model);
  const auto rows = [&](const Recompute& way) {
    return build_step(llava.model, llava.options(way, trainable)).segments.size();
  };
  CHECK(rows({Kind::kBlock, {}}) == rows({}));
  // Three decoder layers, and two of the tower that run.
  CHECK(rows({Kind::kSelective, {"mlp"}}) == rows({}) + 3 + 2);
  const BuildOptions frozen = llava.options({Kind::kSelective, {"mlp"}}, llava.all_but_vision());
  CHECK(build_step(llava.model, frozen).segments.size() == rows({}) + 3);
  CHECK(rows({Kind::kSelective, {"attention", "mlp"}}) == rows({}));
}

TEST_CASE("recompute: two ranks with reductions beside it equal one rank without") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 1);
  const std::vector<model::Batch> batches = {toy::make_batch({}, 1), toy::make_batch({}, 2)};
  BuildOptions options{.trainable = toy::all_but(model, {toy::kTower}),
                       .data_ranks = 2,
                       .recompute = {Kind::kBlock, {}}};
  options.buckets = toy::make_buckets(model, options.trainable, 2);
  const toy::Reference want = toy::plain_loop(model, weights, options.trainable, batches);
  std::vector<double> differences(2);
  dist::run_thread_ranks(2, {}, [&](dist::Group& group) {
    toy::Rank rank(model, options, weights, {batches[group.rank()]}, &group);
    rank.step(toy::count_targets(batches));
    differences[group.rank()] = toy::difference(rank.store, want);
  });
  for (double difference : differences) CHECK(difference < 1e-12);
}

TEST_CASE("check: a recompute that is missing, doubled, late or of a frozen block is named") {
  const Llava llava;
  const Program good =
      build_step(llava.model, llava.options({Kind::kBlock, {}}, llava.all_but_vision()));
  REQUIRE(check(good).empty());
  const auto first = std::find_if(good.list.begin(), good.list.end(),
                                  [](const Instruction& i) { return i.op == Op::kRecompute; });
  const auto at = first - good.list.begin();
  Program missing = good;
  missing.list.erase(missing.list.begin() + at);
  REQUIRE_FALSE(check(missing).empty());
  CHECK(check(missing).front().text.find("has no recompute") != std::string::npos);
  Program late = good;
  std::swap(late.list[at], late.list[at + 1]);
  REQUIRE_FALSE(check(late).empty());
  CHECK(check(late).front().text.find("recompute") != std::string::npos);
  Program twice = good;
  twice.list.insert(twice.list.begin() + at, good.list[at]);
  REQUIRE_FALSE(check(twice).empty());
  CHECK(check(twice).front().text.find("repeats") != std::string::npos);
  Program frozen = good;
  frozen.list.insert(frozen.list.begin() + at, good.list[at]);
  frozen.list[at].segment = frozen.list[at].block = 0;
  REQUIRE_FALSE(check(frozen).empty());
  CHECK(check(frozen).front().text.find("needs no recompute") != std::string::npos);
}
