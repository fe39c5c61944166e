#include "lib/optim/ema.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "tests/optim/toy_params.h"

using namespace mm;
using namespace mm::optim;

namespace {

const EmaOptions kRatio{.decay = .9999, .warm_up = EmaWarmUp::kRatio};

/// One number, and its average.
struct Single {
  explicit Single(const EmaOptions& options, at::ScalarType dtype = at::kDouble)
      : store(model, {.master = dtype == at::kBFloat16 ? at::kFloat : dtype, .compute = dtype}) {
    store.set_trainable({true});
    ema.emplace(store, options);
  }
  double step(double value) {
    store.set(0, at::full({1}, value, at::kDouble));
    ema->update();
    return ema->average(0).item<double>();
  }
  static model::Model one() {
    model::Model model;
    model.add_param({.name = "x", .shape = {1}});
    model::Segment segment{.name = "s", .params = {0}};
    model.blocks.push_back({"b", model::Part::kLanguage, {segment}});
    return model;
  }

  const model::Model model = one();
  ParamStore store;
  std::optional<Ema> ema;
};

}  // namespace

TEST_CASE("C42: the average and its count go on where they stopped; a reset counter shows") {
  const double want[] = {0.818182, 1.704545, 2.601399, 3.500500, 4.400200, 5.300087};
  Single whole(kRatio);
  for (int n = 0; n < 6; ++n) CHECK(whole.step(n + 1) == doctest::Approx(want[n]).epsilon(1e-6));

  Single first(kRatio);
  for (int n = 0; n < 3; ++n) first.step(n + 1);
  // Three separate things: raw weights, average, count.
  Single resumed(kRatio), reset(kRatio);
  for (Single* run : {&resumed, &reset}) {
    run->store.set(0, first.store.master(0));
    run->ema->average(0).copy_(first.ema->average(0));
  }
  resumed.ema->set_count(first.ema->count());
  CHECK(resumed.ema->count() == 3);
  CHECK(resumed.store.master(0).item<double>() == 3);
  for (int n = 3; n < 6; ++n) {
    CHECK(resumed.step(n + 1) == doctest::Approx(want[n]).epsilon(1e-6));
  }
  CHECK(reset.step(4) == doctest::Approx(3.745709).epsilon(1e-6));
}

TEST_CASE("decays: fixed, by the ratio, by a power") {
  CHECK(ema_decay({.decay = .99}, 1) == .99);
  CHECK(ema_decay(kRatio, 1) == doctest::Approx(2.0 / 11));
  CHECK(ema_decay(kRatio, 1000000) == .9999);
  const EmaOptions power{.decay = .999, .warm_up = EmaWarmUp::kPower, .gamma = 2, .power = .75};
  CHECK(ema_decay(power, 6) == doctest::Approx(1 - std::pow(4, -.75)));
  CHECK(ema_decay(power, 100000000) == .999);
  CHECK(ema_warm_up("ratio") == EmaWarmUp::kRatio);
  CHECK(ema_warm_up("power") == EmaWarmUp::kPower);
  CHECK(ema_warm_up("none") == EmaWarmUp::kNone);
  CHECK(!ema_warm_up("cold"));
}

TEST_CASE("an average in fp32 of bf16 training moves at 0.9999") {
  Single run({.decay = .9999}, at::kBFloat16);
  CHECK((run.ema->average(0).scalar_type() == at::kFloat));
  double average = 0;
  for (int n = 0; n < 100; ++n) average = run.step(1);
  CHECK(average == doctest::Approx(1 - std::pow(.9999, 100)).epsilon(1e-3));
}

TEST_CASE("frozen parameters have no average; the averaged model has the store's for them") {
  const model::Model model = toy_model();
  ParamStore store(model, {});
  store.initialise(1);
  std::vector<bool> trainable(model.params.size(), true);
  trainable[1] = false;
  store.set_trainable(trainable);
  Ema ema(store, {.decay = .5});
  CHECK(!ema.average(1).defined());
  CHECK(at::equal(ema.average(0), store.master(0)));
  const at::Tensor before = store.master(0).clone();
  store.set(0, before + 1);
  ema.update();
  CHECK(at::allclose(ema.average(0), before + .5));
  const SavedParams averaged(store, &ema), raw(store, nullptr);
  CHECK(averaged.get(0).is_same(ema.average(0)));
  CHECK(at::equal(averaged.get(1), store.get(1)));
  CHECK(!averaged.get(0).requires_grad());
  CHECK(at::equal(raw.get(0), store.master(0)));
}

TEST_CASE("what is drawn with is what is saved: bf16 runs round neither averages nor masters") {
  const model::Model model = toy_model();
  std::vector<bool> masters(model.params.size(), true);
  masters[1] = false;
  ParamStore store(model, {.compute = at::kBFloat16}, masters);
  store.initialise(1);
  store.set_trainable(masters);
  Ema ema(store, {.decay = .5});
  store.set(0, store.master(0) + 1e-4);
  ema.update();
  const SavedParams averaged(store, &ema), raw(store, nullptr);
  CHECK((averaged.get(0).scalar_type() == at::kFloat));
  CHECK(at::equal(averaged.get(0), ema.average(0)));
  CHECK(at::equal(raw.get(0), store.master(0)));
  CHECK(!at::equal(raw.get(0), store.get(0).to(at::kFloat)));
  CHECK((averaged.get(1).scalar_type() == at::kBFloat16));  // all there is of it
}

TEST_CASE("odd options are refused by name") {
  CHECK_THROWS_WITH_AS((EmaOptions{.decay = 1}.check()), doctest::Contains("decay 1"), UsageError);
  CHECK_THROWS_AS((EmaOptions{.decay = -.1}.check()), UsageError);
  CHECK_THROWS_AS((EmaOptions{.gamma = 0}.check()), UsageError);
  CHECK_THROWS_AS((EmaOptions{.power = -1}.check()), UsageError);
  EmaOptions{}.check();
}
