#include "lib/step/report.h"

#include <doctest/doctest.h>

#include <set>

using namespace mm::step;

TEST_CASE("report: the loss is the mean over targets, 0 without any") {
  StepReport report{.divisor = 8, .loss_sum = 30};
  CHECK(report.loss() == 3.75);
  report.divisor = 0;
  CHECK(report.loss() == 0);
}

TEST_CASE("report: JSON has every figure once and only operations that ran") {
  StepReport report{.step = 7,
                    .global_targets = 8,
                    .divisor = 8,
                    .loss_sum = 30,
                    .grad_norm = 1.5,
                    .updated = true,
                    .wall_ms = 12};
  report.op_ms[static_cast<size_t>(Op::kLoad)] = 0.25;
  report.op_ms[static_cast<size_t>(Op::kForward)] = 4;
  const mm::Json json = report.to_json();
  CHECK(json.at("step") == 7);
  CHECK(json.at("loss") == 3.75);
  CHECK(json.at("data_wait_ms") == 0.25);
  CHECK(json.at("updated") == true);
  CHECK(json.at("op_ms") == mm::Json{{"load", 0.25}, {"forward", 4.0}});
}

TEST_CASE("op_name: every operation has its own name") {
  std::set<std::string_view> names;
  for (int op = 0; op < kOpCount; ++op) names.insert(op_name(static_cast<Op>(op)));
  CHECK(names.size() == kOpCount);
  CHECK(names.count("") == 0);
  CHECK(op_name(Op::kWeightGrad) == "weight_grad");
  CHECK(op_is_built(Op::kUpdate));
  CHECK_FALSE(op_is_built(Op::kWeightGrad));
}
