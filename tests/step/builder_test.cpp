#include "lib/step/builder.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/step/check.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

BuildOptions options_for(const model::Model& model, const std::vector<model::ParamId>& frozen) {
  BuildOptions options{.trainable = toy::all_but(model, frozen)};
  options.buckets = toy::make_buckets(model, options.trainable, 2);
  return options;
}

// "load0 forward0.0 ... reduce:1 norm"
std::string words(const Program& program) {
  std::string text;
  for (const Instruction& i : program.list) {
    if (!text.empty()) text += ' ';
    text += op_name(i.op);
    if (i.micro_batch >= 0) text += fmt::format("{}", i.micro_batch);
    if (i.segment >= 0) text += fmt::format(".{}", i.segment);
    if (i.op == Op::kReduce) text += fmt::format(":{}", i.bucket);
  }
  return text;
}

}  // namespace

TEST_CASE(
    "build_step: each micro-batch goes forward and back before the next, then norm, clip, update") {
  const model::Model model = toy::make_model();
  BuildOptions options = options_for(model, {toy::kTower});
  options.micro_batches = 2;
  CHECK(words(build_step(model, options)) ==
        "load0 forward0.0 forward0.1 forward0.2 forward0.3 forward0.4 forward0.5 "
        "backward0.5 backward0.4 backward0.3 backward0.2 backward0.1 "
        "load1 forward1.0 forward1.1 forward1.2 forward1.3 forward1.4 forward1.5 "
        "backward1.5 backward1.4 backward1.3 backward1.2 backward1.1 norm clip update");
}

TEST_CASE(
    "build_step: a bucket is reduced after the last backward that feeds it, tied weights "
    "included") {
  const model::Model model = toy::make_model();
  BuildOptions options = options_for(model, {});
  options.data_ranks = 2;
  options.clip = false;
  // Buckets: {layer2, layer1.out}, {layer1.in, embedding (head and embed)}, {projector, tower}.
  const Program program = build_step(model, options);
  CHECK(words(program) ==
        "load0 forward0.0 forward0.1 forward0.2 forward0.3 forward0.4 forward0.5 reduce:-2 "
        "backward0.5 backward0.4 backward0.3 reduce:0 backward0.2 reduce:1 backward0.1 backward0.0 "
        "reduce:2 norm update");
  for (const Instruction& i : program.list) {
    if (i.op != Op::kReduce) continue;
    CHECK(i.queue == group_queue(0));
    REQUIRE(i.waits.size() == 1);
    CHECK(program.list[i.waits[0] + 1] == i);
  }
}

TEST_CASE("build_step: a bucket that nothing feeds is reduced before the backward") {
  const model::Model model = toy::make_model();
  BuildOptions options = options_for(model, {toy::kTower});
  options.buckets.push_back({{toy::kTower}, 12});
  options.data_ranks = 2;
  const std::string text = words(build_step(model, options));
  CHECK(text.find("reduce:-2 reduce:3 backward0.5") != std::string::npos);
}

TEST_CASE("build_step: what is frozen from the start on has no backward and no twin") {
  const model::Model model = toy::make_model();
  const Program program =
      build_step(model, options_for(model, {toy::kTower, toy::kProjector, toy::kEmbedding,
                                            toy::kLayer1In, toy::kLayer1Out}));
  for (int s : {0, 1, 2, 3}) CHECK_FALSE(program.segments[s].has_backward);
  CHECK(program.segments[4].has_backward);
  CHECK(program.segments[4].in_needs_grad == std::vector<uint8_t>{0, 0});
  CHECK(program.segments[5].has_backward);
  CHECK(program.segments[5].trained.empty());
}

TEST_CASE("build_step: segments of a block are joined, slots between them stay inside") {
  const model::Model model = toy::make_model();
  const Program program = build_step(model, options_for(model, {}));
  REQUIRE(program.segments.size() == model.blocks.size());
  const SegmentRow& embed = program.segments[2];
  CHECK(embed.steps == 2);
  CHECK(embed.in == std::vector<model::Slot>{1});
  CHECK(embed.out == std::vector<model::Slot>{3});
  const SegmentRow& head = program.segments[5];
  CHECK(head.out == std::vector<model::Slot>{model.loss_slot});
  CHECK(head.loss == 0);
}

TEST_CASE("build_step: a forward-only list has loads and forwards and keeps no tape") {
  const model::Model model = toy::make_model();
  const Program program = build_step(model, {.data_ranks = 2, .forward_only = true});
  CHECK(words(program) ==
        "load0 forward0.0 forward0.1 forward0.2 forward0.3 forward0.4 forward0.5 reduce:-2");
  for (const SegmentRow& row : program.segments) CHECK_FALSE(row.has_backward);
  CHECK(check(program).empty());
}

TEST_CASE("build_step: the hash tells lists and tables apart and repeats") {
  const model::Model model = toy::make_model();
  BuildOptions options = options_for(model, {});
  const uint64_t hash = build_step(model, options).hash();
  CHECK(build_step(model, options).hash() == hash);
  options.clip = false;
  CHECK(build_step(model, options).hash() != hash);
  options.clip = true;
  options.buckets[0].elements += 1;
  CHECK(build_step(model, options).hash() != hash);
  CHECK(build_step(model, options_for(model, {toy::kTower})).hash() != hash);
}

TEST_CASE("build_step: models and buckets out of order are refused") {
  model::Model model = toy::make_model();
  BuildOptions options = options_for(model, {});
  options.buckets.pop_back();
  CHECK_THROWS_AS(build_step(model, options), InternalError);
  options = options_for(model, {});
  options.buckets[0].params.push_back(toy::kTower);
  CHECK_THROWS_AS(build_step(model, options), InternalError);
  options = options_for(model, {});
  options.trainable.pop_back();
  CHECK_THROWS_AS(build_step(model, options), InternalError);
  std::swap(model.blocks[0], model.blocks[1]);
  CHECK_THROWS_AS(build_step(model, options_for(model, {})), InternalError);
  model = toy::make_model();
  model.blocks.push_back(model.blocks[0]);
  CHECK_THROWS_AS(build_step(model, options_for(model, {})), InternalError);
}
