#include "lib/optim/lion.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

const std::vector<bool> kTrained = {true, true, false, true, true, true, true};
const std::map<model::Part, double> kRates = {
    {model::Part::kVision, 1e-2}, {model::Part::kProjector, 2e-2}, {model::Part::kLanguage, 3e-3}};

struct Run {
  model::Model model = toy_model();
  ParamStore store;
  FlatGradSink sink;
  Lion lion;
  Run()
      : store(model, {.master = at::kDouble, .compute = at::kDouble}),
        sink((store.initialise(1), store.set_trainable(kTrained), model), kTrained,
             {.accumulate = at::kDouble}),
        lion(store, sink, {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1}) {}

  void step(int number) {
    sink.zero();
    for (size_t i = 0; i < model.params.size(); ++i) {
      if (!kTrained[i]) continue;
      const at::Tensor grad = sink.gradient(static_cast<model::ParamId>(i));
      grad.copy_(gradient(static_cast<int>(i), number, grad.numel()).view(grad.sizes()));
    }
    lion.update(kRates);
  }
  static at::Tensor gradient(int param, int number, int64_t count) {
    return at::sin(at::arange(count, at::kDouble) * 1.3 + param + 0.7 * number);
  }
};

}  // namespace

TEST_CASE(
    "Lion equals its formula element by element over ten updates, decay only where it applies") {
  Run run, start;
  for (int number = 0; number < 10; ++number) run.step(number);
  for (size_t i = 0; i < run.model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    const at::Tensor want = start.store.master(id).reshape({-1}).clone(),
                     got = run.store.master(id).reshape({-1});
    const model::ParamSpec& spec = run.model.params[i];
    for (int64_t k = 0; k < want.numel(); ++k) {
      double p = want[k].item<double>(), m = 0;
      for (int number = 0; number < 10 && kTrained[i]; ++number) {
        const double g = Run::gradient(static_cast<int>(i), number, want.numel())[k].item<double>();
        const double rate = kRates.at(spec.part), c = 0.9 * m + 0.1 * g;
        p = p * (spec.decay ? 1 - rate * 0.1 : 1) - rate * ((c > 0) - (c < 0));
        m = 0.99 * m + 0.01 * g;
      }
      CHECK(got[k].item<double>() == doctest::Approx(p).epsilon(1e-12));
    }
  }
  CHECK(run.lion.update_count() == 10);
}

TEST_CASE("Lion goes on from saved moments to the bit and has none for frozen parameters") {
  Run whole, resumed;
  whole.step(0);
  for (size_t i = 0; i < whole.model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    resumed.store.set(id, whole.store.master(id));
    CHECK(whole.lion.moments(id).size() == (kTrained[i] ? 1 : 0));
    if (kTrained[i]) resumed.lion.moments(id)[0].value.copy_(whole.lion.moments(id)[0].value);
  }
  resumed.lion.set_update_count(1);
  for (int number : {1, 2}) whole.step(number), resumed.step(number);
  for (size_t i = 0; i < whole.model.params.size(); ++i)
    CHECK(whole.store.master(static_cast<model::ParamId>(i))
              .equal(resumed.store.master(static_cast<model::ParamId>(i))));
}

TEST_CASE("Lion without a rate for a part that trains is an error") {
  Run run;
  CHECK_THROWS_AS(run.lion.update({{model::Part::kVision, 1e-2}}), InternalError);
}

}  // namespace mm::optim
