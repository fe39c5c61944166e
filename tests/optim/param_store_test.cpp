#include "lib/optim/param_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

const Precision kBf16 = {.master = at::kFloat, .compute = at::kBFloat16};

}  // namespace

TEST_CASE("C33: a hundred subtractions of 0.0006 add up in the master and show in the bf16 copy") {
  const model::Model model = toy_model();
  ParamStore store(model, kBf16);
  store.set("text.norm", at::ones({3}));
  std::vector<bool> trainable(model.params.size(), false);
  trainable[kNorm] = true;
  store.set_trainable(trainable);
  at::Tensor bf16_only = at::ones({3}, at::kBFloat16);
  for (int i = 0; i < 100; ++i) {
    store.master(kNorm).sub_(0.0006);
    bf16_only.sub_(0.0006);
    store.refresh_compute();
  }
  CHECK(store.master(kNorm)[0].item<double>() == doctest::Approx(0.94).epsilon(1e-5));
  CHECK(store.get(kNorm)[0].item<double>() == 0.94140625);
  CHECK(bf16_only[0].item<double>() == 1.0);  // why masters exist
}

TEST_CASE(
    "leaves require gradients exactly where they train, and setting that again keeps their "
    "memory") {
  const model::Model model = toy_model();
  ParamStore store(model, Precision{});
  store.initialise(1);
  const void* const memory = store.get(kHead).data_ptr();
  for (const bool vision : {true, false, true}) {
    std::vector<bool> trainable(model.params.size());
    for (size_t i = 0; i < trainable.size(); ++i)
      trainable[i] = (model.params[i].part == model::Part::kVision) == vision;
    store.set_trainable(trainable);
    for (size_t i = 0; i < trainable.size(); ++i) {
      const at::Tensor leaf = store.get(static_cast<model::ParamId>(i));
      CHECK(leaf.requires_grad() == trainable[i]);
      CHECK(leaf.is_leaf());
      CHECK(leaf.sizes() == at::IntArrayRef(model.params[i].shape));
    }
    CHECK(store.get(kHead).data_ptr() == memory);
  }
}

TEST_CASE("with equal dtypes the compute copy is the master, in bf16 it is its rounding") {
  const model::Model model = toy_model();
  ParamStore same(model, Precision{.master = at::kDouble, .compute = at::kDouble});
  same.initialise(5);
  CHECK(same.get(kEmbed).data_ptr() == same.master(kEmbed).data_ptr());
  CHECK((same.get(kEmbed).scalar_type() == at::kDouble));
  ParamStore rounded(model, kBf16);
  rounded.initialise(5);
  CHECK(rounded.get(kEmbed).equal(rounded.master(kEmbed).to(at::kBFloat16)));
  CHECK(rounded.master(kEmbed).equal(same.master(kEmbed).to(at::kFloat)));
}

TEST_CASE(
    "refresh rounds the parts that train and leaves frozen copies alone unless told otherwise") {
  const model::Model model = toy_model();
  ParamStore store(model, kBf16);
  store.initialise(5);
  std::vector<bool> trainable(model.params.size(), false);
  trainable[kProjector] = true;
  store.set_trainable(trainable);
  const at::Tensor before = store.get(kEmbed).clone();
  store.master(kProjector).fill_(2);
  store.master(kEmbed).fill_(2);
  store.refresh_compute();
  CHECK(store.get(kProjector).eq(2).all().item<bool>());
  CHECK(store.get(kEmbed).equal(before));
  store.refresh_compute(/*all=*/true);
  CHECK(store.get(kEmbed).eq(2).all().item<bool>());
}

TEST_CASE("a tape sees the new values after an update in place") {
  const model::Model model = toy_model();
  ParamStore store(model, Precision{});
  store.initialise(5);
  store.set_trainable(std::vector<bool>(model.params.size(), true));
  for (const double value : {2.0, 3.0}) {
    store.master(kNorm).fill_(value);
    const at::Tensor leaf = store.get(kNorm);
    const auto grads = torch::autograd::grad({leaf.square().sum()}, {leaf});
    CHECK(grads[0].eq(2 * value).all().item<bool>());
    CHECK_FALSE(leaf.grad().defined());
  }
}

TEST_CASE("a value of another shape or name is refused with both shapes") {
  const model::Model model = toy_model();
  ParamStore store(model, Precision{});
  CHECK_THROWS_WITH_AS(store.set(kHead, at::ones({3, 2})),
                       "text.head has shape [3, 2], but the model expects [2, 3]", UsageError);
  CHECK_THROWS_AS(store.set("text.nothing", at::ones({1})), Error);
  CHECK_THROWS_AS(ParamStore(model, Precision{.master = at::kBFloat16, .compute = at::kBFloat16}),
                  InternalError);
}

TEST_CASE("parameters start on 64-byte boundaries in both dtypes and do not overlap") {
  const model::Model model = toy_model();
  ParamStore store(model, kBf16);
  for (size_t i = 0; i < model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    CHECK(reinterpret_cast<uintptr_t>(store.get(id).data_ptr()) % 64 == 0);
    store.set(id, at::full(model.params[i].shape, static_cast<double>(i)));
  }
  for (size_t i = 0; i < model.params.size(); ++i) {
    CHECK(
        store.master(static_cast<model::ParamId>(i)).eq(static_cast<double>(i)).all().item<bool>());
  }
}

TEST_CASE("C36: all data ranks start with bit-equal copies") {
  const model::Model model = toy_model();
  dist::run_thread_ranks(2, {.timeout = std::chrono::seconds(20)}, [&](dist::Group& group) {
    ParamStore store(model, Precision{});
    store.initialise(7);
    for (size_t i = 0; i < model.params.size(); ++i) {
      const at::Tensor mine = store.master(static_cast<model::ParamId>(i)).reshape({-1});
      at::Tensor all = at::empty({2 * mine.numel()}, at::kFloat);
      group.all_gather(all, mine);
      REQUIRE(all.narrow(0, 0, mine.numel()).equal(all.narrow(0, mine.numel(), mine.numel())));
    }
  });
}

TEST_CASE("a parameter without a master is drawn like one with, rounded once, and cannot train") {
  const model::Model model = toy_model();
  std::vector<bool> masters(model.params.size(), true);
  masters[kPatch] = masters[kEmbed] = false;
  ParamStore whole(model, kBf16), lean(model, kBf16, masters);
  whole.initialise(3);
  lean.initialise(3);
  for (size_t i = 0; i < model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    CHECK(lean.get(id).equal(whole.get(id)));
    CHECK((lean.master(id).scalar_type() == (masters[i] ? at::kFloat : at::kBFloat16)));
    CHECK(lean.master(id).is_alias_of(lean.get(id)) == !masters[i]);
    if (masters[i]) CHECK(lean.master(id).equal(whole.master(id)));
  }
  CHECK(lean.size_bytes() < whole.size_bytes());
  std::vector<bool> trainable(model.params.size(), false);
  trainable[kPatch] = true;
  CHECK_THROWS_AS(lean.set_trainable(trainable), InternalError);
  lean.set(kPatch, at::full({4, 3}, 1.001));
  CHECK(lean.get(kPatch)[0][0].item<double>() == 1.0);
}

TEST_CASE("masters that are let go leave values and handles as they were, the others their bits") {
  const model::Model model = toy_model();
  ParamStore store(model, kBf16);
  store.initialise(3);
  const at::Tensor handle = store.get(kPatch), before = handle.clone(),
                   embed = store.master(kEmbed).clone();
  const int64_t bytes = store.size_bytes();
  std::vector<bool> kept(model.params.size(), false);
  kept[kEmbed] = kept[kProjector] = true;
  store.keep_masters(kept);
  CHECK(store.size_bytes() < bytes);
  store.refresh_compute(/*all=*/true);
  CHECK(handle.equal(before));
  CHECK(store.get(kPatch).data_ptr() == handle.data_ptr());
  CHECK(store.master(kPatch).equal(before));
  CHECK(store.master(kEmbed).equal(embed));
  store.master(kEmbed).add_(1);
  store.refresh_compute(/*all=*/true);
  CHECK(store.get(kEmbed).equal(store.master(kEmbed).to(at::kBFloat16)));
  CHECK(handle.equal(before));
  std::vector<bool> trainable(model.params.size(), false);
  trainable[kProjector] = true;
  store.set_trainable(trainable);
  CHECK_THROWS_AS(store.keep_masters(std::vector<bool>(model.params.size(), false)), InternalError);
}

TEST_CASE("parts may count in their own dtype beside fp32 masters") {
  const model::Model model = toy_model();
  Precision precision{.master = at::kFloat, .compute = at::kBFloat16};
  precision.part_compute[0] = at::kHalf;
  precision.part_compute[1] = at::kFloat;
  const ParamStore store(model, precision);
  CHECK((store.get(kPatch).scalar_type() == at::kHalf));
  CHECK((store.get(kProjector).scalar_type() == at::kFloat));
  CHECK(store.get(kProjector).is_alias_of(store.master(kProjector)));
  CHECK((store.get(kHead).scalar_type() == at::kBFloat16));
}

}  // namespace mm::optim
