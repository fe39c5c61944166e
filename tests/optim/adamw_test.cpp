#include "lib/optim/adamw.h"

#include <ATen/ops/empty.h>
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/initial_draw.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

using model::Part;

const AdamWOptions kOptions = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
const std::map<Part, double> kRates = {
    {Part::kVision, 1e-3}, {Part::kProjector, 5e-3}, {Part::kLanguage, 2e-3}};
constexpr Precision kDouble = {.master = at::kDouble, .compute = at::kDouble};

/// Store, sink and optimizer of one small run.
struct Run {
  explicit Run(const Precision& precision, std::vector<bool> trainable = std::vector<bool>(7, true),
               int64_t bucket_bytes = 100)
      : store(model, precision) {
    store.initialise(3);
    store.set_trainable(trainable);
    sink.emplace(model, trainable,
                 BucketOptions{.bucket_bytes = bucket_bytes, .accumulate = precision.master});
    optimizer.emplace(store, *sink, kOptions);
  }

  /// Gradients are a function of (step, parameter).
  void step(int number) {
    sink->zero();
    for (size_t i = 0; i < model.params.size(); ++i) {
      if (store.trainable()[i]) sink->add(static_cast<model::ParamId>(i), gradient(number, i));
    }
    optimizer->update(kRates);
  }

  at::Tensor gradient(int number, size_t row) const {
    model::ParamSpec spec = model.params[row];
    spec.init = model::Init::kNormal;
    at::Tensor grad = at::empty(spec.shape, at::kDouble);
    model::InitialDraw(spec, static_cast<uint64_t>(100 + number)).fill(grad);
    return grad;
  }

  model::Model model = toy_model();
  ParamStore store;
  std::optional<FlatGradSink> sink;
  std::optional<AdamW> optimizer;
};

/// One parameter by the formula, in plain double loops.
struct PlainAdamW {
  std::vector<double> value, m, v;
  void step(const at::Tensor& grad, int t, double lr, double decay) {
    m.resize(value.size());
    v.resize(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      const double g = grad.data_ptr<double>()[i];
      value[i] *= 1 - lr * decay;
      m[i] = kOptions.beta1 * m[i] + (1 - kOptions.beta1) * g;
      v[i] = kOptions.beta2 * v[i] + (1 - kOptions.beta2) * g * g;
      const double root =
          std::sqrt(v[i]) / std::sqrt(1 - std::pow(kOptions.beta2, t)) + kOptions.eps;
      value[i] -= lr / (1 - std::pow(kOptions.beta1, t)) * m[i] / root;
    }
  }
};

void check_against_plain(const Precision& precision, double tolerance) {
  Run run(precision);
  std::vector<PlainAdamW> plain(run.model.params.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    const at::Tensor start =
        run.store.master(static_cast<model::ParamId>(i)).to(at::kDouble).contiguous();
    plain[i].value.assign(start.data_ptr<double>(), start.data_ptr<double>() + start.numel());
  }
  for (int t = 1; t <= 10; ++t) {
    run.step(t);
    for (size_t i = 0; i < plain.size(); ++i) {
      const model::ParamSpec& spec = run.model.params[i];
      plain[i].step(run.gradient(t, i), t, kRates.at(spec.part),
                    spec.decay ? kOptions.weight_decay : 0.0);
    }
  }
  for (size_t i = 0; i < plain.size(); ++i) {
    const at::Tensor got =
        run.store.master(static_cast<model::ParamId>(i)).to(at::kDouble).contiguous();
    for (size_t k = 0; k < plain[i].value.size(); ++k) {
      CHECK(std::abs(got.data_ptr<double>()[k] - plain[i].value[k]) <= tolerance);
    }
  }
}

std::vector<at::Tensor> snapshot(const Run& run) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < run.model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    tensors.push_back(run.store.master(id).clone());
    tensors.push_back(run.store.get(id).detach().clone());
    if (!run.store.trainable()[i]) continue;
    tensors.push_back(run.optimizer->exp_avg(id).clone());
    tensors.push_back(run.optimizer->exp_avg_sq(id).clone());
  }
  return tensors;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = a[i].equal(b[i]);
  return same;
}

}  // namespace

TEST_CASE(
    "ten updates equal the formula in plain double loops: float64 to 1e-12, fp32 to rounding") {
  check_against_plain(kDouble, 1e-12);
  check_against_plain(Precision{}, 2e-6);
}

TEST_CASE("the first update moves every weight by the rate, against the sign of its gradient") {
  Run run(kDouble);
  const at::Tensor before = run.store.master(kNorm).clone();
  run.step(1);
  const at::Tensor moved = run.store.master(kNorm) - before;
  CHECK((moved + run.gradient(1, kNorm).sign() * kRates.at(Part::kLanguage))
            .abs()
            .max()
            .item<double>() < 1e-7);
}

TEST_CASE("bucket size changes no bit of weights or moments") {
  const auto after = [](int64_t bucket_bytes) {
    Run run(Precision{.compute = at::kBFloat16}, std::vector<bool>(7, true), bucket_bytes);
    for (int t = 1; t <= 3; ++t) run.step(t);
    return snapshot(run);
  };
  const std::vector<at::Tensor> want = after(1);
  for (const int64_t bytes : {64, 200, 1 << 20}) CHECK(same_bits(after(bytes), want));
}

TEST_CASE("C32: a skipped update leaves weights, moments and count unchanged to the bit") {
  Run run(Precision{.compute = at::kBFloat16});
  run.step(1);
  const std::vector<at::Tensor> before = snapshot(run);
  run.sink->zero();  // a step without any target: the program does not call update
  CHECK(same_bits(snapshot(run), before));
  CHECK(run.optimizer->update_count() == 1);
}

TEST_CASE("frozen parameters keep their bits, decay included, and have no moments") {
  std::vector<bool> trainable(7, true);
  trainable[kEmbed] = trainable[kPatch] = false;
  Run run(Precision{}, trainable);
  const at::Tensor embed = run.store.master(kEmbed).clone(), head = run.store.master(kHead).clone();
  run.step(1);
  CHECK(run.store.master(kEmbed).equal(embed));
  CHECK_FALSE(run.store.master(kHead).equal(head));
  CHECK_FALSE(run.optimizer->exp_avg(kEmbed).defined());
  CHECK_FALSE(run.optimizer->exp_avg_sq(kEmbed).defined());
}

TEST_CASE("a run restored from weights, moments and count goes on to the bit") {
  Run whole(Precision{.compute = at::kBFloat16});
  for (int t = 1; t <= 2; ++t) whole.step(t);
  Run resumed(Precision{.compute = at::kBFloat16}, std::vector<bool>(7, true), 1 << 20);
  for (size_t i = 0; i < whole.model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    resumed.store.set(id, whole.store.master(id));
    resumed.optimizer->exp_avg(id).copy_(whole.optimizer->exp_avg(id));
    resumed.optimizer->exp_avg_sq(id).copy_(whole.optimizer->exp_avg_sq(id));
  }
  resumed.optimizer->set_update_count(whole.optimizer->update_count());
  whole.step(3);
  resumed.step(3);
  CHECK(same_bits(snapshot(resumed), snapshot(whole)));
}

TEST_CASE("compute copies follow the masters after an update") {
  Run run(Precision{.compute = at::kBFloat16});
  run.step(1);
  CHECK(run.store.get(kHead).equal(run.store.master(kHead).to(at::kBFloat16)));
}

TEST_CASE(
    "a part that trains without a rate, or a sink of another trainable set, is our bug and named") {
  Run run(Precision{});
  CHECK_THROWS_AS(run.optimizer->update({{Part::kVision, 1e-3}}), InternalError);
  CHECK(run.optimizer->update_count() == 0);
  run.store.set_trainable(std::vector<bool>(7, false));
  CHECK_THROWS_AS(AdamW(run.store, *run.sink, kOptions), InternalError);
}

}  // namespace mm::optim
