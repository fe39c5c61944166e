#include "lib/optim/loss_scaler.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"

namespace mm::optim {

TEST_CASE("C35: 65519 is finite in fp16, 65520 is not, and one such gradient is an overflow") {
  const at::Tensor values = at::tensor({65519.0F, 65520.0F}).to(at::kHalf);
  CHECK(values[0].item<float>() == 65504.0F);
  CHECK(std::isinf(values[1].item<float>()));
}

TEST_CASE("C35: of six steps the third overflows: the scale is halved, five updates are made") {
  LossScaler scaler(65536, 2000);
  int updates = 0;
  for (int step = 1; step <= 6; ++step) {
    const bool overflow = step == 3;
    scaler.step_done(overflow);
    updates += overflow ? 0 : 1;
  }
  CHECK(updates == 5);
  CHECK(scaler.scale() == 32768);
  CHECK(scaler.state().good_steps == 3);
}

TEST_CASE("loss scale: doubles after the given number of good steps, stays within its limits") {
  LossScaler scaler(1 << 23, 2);
  scaler.step_done(false);
  CHECK(scaler.scale() == 1 << 23);
  scaler.step_done(false);
  CHECK(scaler.scale() == 1 << 24);
  for (int i = 0; i < 4; ++i) scaler.step_done(false);
  CHECK(scaler.scale() == 1 << 24);
  for (int i = 0; i < 48; ++i) {
    CHECK_FALSE(scaler.at_smallest());
    scaler.step_done(true);
  }
  CHECK(scaler.scale() == 1.0 / (1 << 24));
  CHECK(scaler.at_smallest());
  for (int i = 0; i < 100; ++i) scaler.step_done(true);
  CHECK(scaler.scale() == 1.0 / (1 << 24));
  LossScaler fixed(1024, 0);
  for (int i = 0; i < 100; ++i) fixed.step_done(false);
  CHECK(fixed.scale() == 1024);
}

TEST_CASE("loss scale: goes on from a saved state, refuses what is no power of two") {
  LossScaler whole(65536, 3), resumed(65536, 3);
  whole.step_done(false);
  whole.step_done(true);
  whole.step_done(false);
  resumed.set_state(whole.state());
  for (bool overflow : {false, false, true}) {
    whole.step_done(overflow);
    resumed.step_done(overflow);
    CHECK(whole.state() == resumed.state());
  }
  CHECK_THROWS_AS(LossScaler(1000, 1), UsageError);
  CHECK_THROWS_AS(LossScaler(0, 1), UsageError);
}

}  // namespace mm::optim
