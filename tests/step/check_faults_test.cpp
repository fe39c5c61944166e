#include <doctest/doctest.h>

#include <algorithm>

#include "lib/step/builder.h"
#include "lib/step/check.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

Program good() {
  const model::Model model = toy::make_model();
  BuildOptions options{.micro_batches = 2, .trainable = toy::all_but(model, {}), .data_ranks = 2};
  options.buckets = toy::make_buckets(model, options.trainable, 2);
  return build_step(model, options);
}

int find(const Program& program, Op op, int micro_batch, int segment_or_bucket) {
  const auto found =
      std::find_if(program.list.begin(), program.list.end(), [&](const Instruction& i) {
        return i.op == op && i.micro_batch == micro_batch &&
               (op == Op::kReduce ? i.bucket : i.segment) == segment_or_bucket;
      });
  REQUIRE(found != program.list.end());
  return static_cast<int>(found - program.list.begin());
}

/// Swaps what two instructions do and leaves queues, order and waits.
void swap_work(Program& program, int a, int b) {
  std::swap(program.list[a], program.list[b]);
  std::swap(program.list[a].waits, program.list[b].waits);
}

void expect(const std::vector<Problem>& problems, const Program& program, const std::string& text) {
  std::string all;
  for (const Problem& problem : problems) all += describe(problem, program) + "\n";
  CAPTURE(all);
  CHECK(all.find(text) != std::string::npos);
}

void expect(const Program& program, const std::string& text) {
  expect(check(program), program, text);
}

}  // namespace

TEST_CASE("check: reductions that one rank takes in another order are found") {
  const Program first = good();
  Program second = first;
  swap_work(second, find(second, Op::kReduce, -1, 0), find(second, Op::kReduce, -1, 1));
  expect(check({&first, &second}), second, "rank 1, instruction");
  expect(check({&first, &second}), second, "meets reduce of bucket 0 (32 elements) of rank 0");
}

TEST_CASE("check: a bucket of another size on one rank is found") {
  const Program first = good();
  Program second = first;
  second.buckets[1].elements += 1;
  expect(check({&first, &second}), second,
         "reduce of bucket 1 (45 elements) meets reduce of bucket 1 (44 elements)");
}

TEST_CASE("check: a bucket reduced twice, or too early, is found") {
  Program program = good();
  program.list[find(program, Op::kReduce, -1, 2)].bucket = 1;
  expect(program, "bucket 1 is reduced 2 times, not once");
  expect(program, "bucket 2 is reduced 0 times, not once");
  program = good();
  program.list[find(program, Op::kReduce, -1, 0)].waits = {find(program, Op::kBackward, 1, 5)};
  expect(program, "a contribution, instruction");
}

TEST_CASE("check: a norm that does not wait for the reductions is found") {
  Program program = good();
  for (Instruction& i : program.list) {
    if (i.op == Op::kNorm) i.waits.clear();
  }
  expect(program, "a reduction, instruction");
}

TEST_CASE("check: a missing update and a repeated norm are found") {
  Program program = good();
  program.list.pop_back();
  expect(program, "there is no update");
  program = good();
  program.list.back().op = Op::kNorm;
  expect(program, "repeats instruction");
}

TEST_CASE(
    "check: work out of order is found: forward before load, reader before writer, backward before "
    "forward") {
  Program program = good();
  swap_work(program, find(program, Op::kLoad, 0, -1), find(program, Op::kForward, 0, 0));
  expect(program, "load 1 is not surely done before");
  program = good();
  swap_work(program, find(program, Op::kForward, 0, 0), find(program, Op::kForward, 0, 1));
  expect(program, "the writer of an input, instruction");
  program = good();
  swap_work(program, find(program, Op::kForward, 0, 5), find(program, Op::kBackward, 0, 5));
  expect(program, "its forward, instruction");
}

TEST_CASE("check: backwards out of order are found: gradients incomplete, micro-batches swapped") {
  Program program = good();
  swap_work(program, find(program, Op::kBackward, 0, 2), find(program, Op::kBackward, 0, 4));
  expect(program, "a reader's backward, instruction");
  program = good();
  swap_work(program, find(program, Op::kBackward, 0, 0), find(program, Op::kBackward, 1, 0));
  expect(program, "the last micro-batch's backward, instruction");
}

TEST_CASE("check: waits that do not point backwards, and what is not built, are found") {
  Program program = good();
  program.list[3].waits = {3};
  expect(program, "waits for 3, which is not an earlier instruction");
  program.list[3].waits = {-1};
  expect(program, "waits for -1, which is not an earlier instruction");
  program = good();
  program.list[3].op = Op::kWeightGrad;
  expect(program, "operation weight_grad is not built");
}

TEST_CASE("check: rows, queues and groups that do not exist are found") {
  Program program = good();
  program.list[0].micro_batch = 2;
  program.list[1].segment = 6;
  program.list[2].queue = kCopyQueue;
  program.list[find(program, Op::kReduce, -1, 0)].bucket = 9;
  program.list[find(program, Op::kReduce, -1, 1)].queue = kComputeQueue;
  program.list[find(program, Op::kReduce, -1, 2)].group = 1;
  for (const char* text : {"micro-batch 2 of 2", "segment 6 of 6", "queue 1 does not run forward",
                           "bucket 9 of 3", "queue 0 is not that of group 0", "group 1 of 1"}) {
    expect(program, text);
  }
}

TEST_CASE("check: a group of another size than the ranks given is found") {
  const Program program = good();
  expect(check({&program}), program, "group data has 2 ranks, 1 are given");
}
