#include "lib/step/check.h"

#include <doctest/doctest.h>

#include <random>

#include "lib/step/builder.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

int draw_int(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

// Blocks of 1 to 3 segments that read one to three earlier slots; every slot is read by somebody or
// the head, which yields the loss. Parameters may be shared between segments. Forward functions are
// absent: only the list is looked at.
model::Model random_model(std::mt19937& random) {
  model::Model model;
  const int params = draw_int(random, 1, 6);
  for (int p = 0; p < params; ++p)
    model.add_param({.name = "p", .shape = {draw_int(random, 1, 9)}});
  std::vector<model::Slot> written;
  const int blocks = draw_int(random, 1, 6);
  for (int b = 0; b < blocks; ++b) {
    model::Block block{.name = "block"};
    for (int s = draw_int(random, 1, 3); s > 0; --s) {
      model::Segment segment;
      for (int reads = written.empty() ? 0 : draw_int(random, 0, 3); reads > 0; --reads) {
        segment.in.push_back(written[random() % written.size()]);
      }
      for (int uses = draw_int(random, 0, 2); uses > 0; --uses)
        segment.params.push_back(draw_int(random, 0, params - 1));
      segment.out.push_back(model.add_slot("s"));
      written.push_back(segment.out[0]);
      block.steps.emplace_back(segment);
    }
    model.blocks.push_back(block);
  }
  model.loss_slot = model.add_slot("loss");
  model::Segment head{.in = written, .out = {model.loss_slot}, .params = {0}, .yields_loss = true};
  model.blocks.push_back({"head", model::Part::kLanguage, {head}});
  return model;
}

BuildOptions random_options(const model::Model& model, std::mt19937& random) {
  BuildOptions options{.micro_batches = draw_int(random, 1, 4),
                       .data_ranks = draw_int(random, 1, 3),
                       .clip = random() % 2 == 0};
  for (size_t p = 0; p < model.params.size(); ++p) options.trainable.push_back(random() % 3 != 0);
  options.buckets = toy::make_buckets(model, options.trainable, draw_int(random, 1, 3));
  return options;
}

// The list without instruction `gone`; whoever waited for it waits no more.
Program without(const Program& program, int gone) {
  Program result = program;
  result.list.erase(result.list.begin() + gone);
  for (Instruction& i : result.list) {
    std::erase(i.waits, gone);
    for (int& wait : i.waits) wait -= wait > gone;
  }
  return result;
}

}  // namespace

TEST_CASE("check: 300 random models and layouts build into lists without a problem") {
  std::mt19937 random(1);
  for (int n = 0; n < 300; ++n) {
    CAPTURE(n);
    const model::Model model = random_model(random);
    const Program program = build_step(model, random_options(model, random));
    const std::vector<Problem> problems = check(program);
    if (!problems.empty()) FAIL_CHECK(describe(problems[0], program));
  }
}

TEST_CASE("check: any instruction missing on all ranks is a problem, but for the clip") {
  std::mt19937 random(2);
  for (int n = 0; n < 30; ++n) {
    const model::Model model = random_model(random);
    const Program program = build_step(model, random_options(model, random));
    for (int i = 0; i < static_cast<int>(program.list.size()); ++i) {
      CAPTURE(n);
      CAPTURE(i);
      const Program broken = without(program, i);
      CHECK(check(broken).empty() == (program.list[i].op == Op::kClip));
    }
  }
}

TEST_CASE("check: any wait missing on all ranks is a problem") {
  std::mt19937 random(3);
  for (int n = 0; n < 60; ++n) {
    const model::Model model = random_model(random);
    Program program = build_step(model, random_options(model, random));
    for (int i = 0; i < static_cast<int>(program.list.size()); ++i) {
      if (program.list[i].waits.empty()) continue;
      CAPTURE(n);
      CAPTURE(i);
      std::vector<int> waits;
      std::swap(waits, program.list[i].waits);
      CHECK_FALSE(check(program).empty());
      std::swap(waits, program.list[i].waits);
    }
  }
}

TEST_CASE(
    "check: any collective missing on one rank leaves somebody waiting or meets the wrong one") {
  std::mt19937 random(4);
  for (int n = 0; n < 30; ++n) {
    const model::Model model = random_model(random);
    BuildOptions options = random_options(model, random);
    options.data_ranks = 2;
    const Program program = build_step(model, options);
    for (int i = 0; i < static_cast<int>(program.list.size()); ++i) {
      if (program.list[i].op != Op::kReduce) continue;
      const Program broken = without(program, i);
      bool found = false;
      for (const Problem& problem : check({&program, &broken})) {
        found |= problem.text.find("waits for ever") != std::string::npos ||
                 problem.text.find("meets") != std::string::npos;
      }
      CHECK(found);
    }
  }
}
