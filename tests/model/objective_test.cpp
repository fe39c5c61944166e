#include "lib/model/objective.h"

#include <doctest/doctest.h>

#include <numbers>

#include "lib/base/error.h"
#include "tests/model/operation_check.h"

using namespace mm;
using namespace mm::model;
using namespace mm::model::test;

namespace {

DiffusionInput input_of(std::vector<double> times, const std::vector<int64_t>& shape) {
  DiffusionInput in;
  in.times = at::tensor(times, at::kDouble);
  in.clean = draw(shape, at::kDouble, 2) * 0.4;
  in.noise = draw(shape, at::kDouble, 3);
  return in;
}

}  // namespace

TEST_CASE("C53: the noise loss reads the first half of the channels only") {
  const DiffusionInput in = input_of({20, 700}, {2, 4, 3, 3});
  const at::Tensor noise = draw({2, 4, 3, 3}, at::kDouble, 5);
  const at::Tensor quiet = at::cat({noise, at::zeros_like(noise)}, 1),
                   loud = at::cat({noise, at::full_like(noise, 1000)}, 1);
  const Process plain{Objective{}};
  CHECK(at::equal(plain.losses(quiet, in.clean, in).total, plain.losses(loud, in.clean, in).total));
  const Process bound(Objective{.variational_bound = true});
  CHECK(
      at::equal(bound.losses(quiet, in.clean, in).square, bound.losses(loud, in.clean, in).square));
  CHECK(!at::equal(bound.losses(quiet, in.clean, in).variance_term,
                   bound.losses(loud, in.clean, in).variance_term));
}

TEST_CASE("C53: the bound teaches the variance only, a flow leaves the extra half alone") {
  const DiffusionInput in = input_of({20, 700}, {2, 4, 3, 3});
  const auto gradient = [&](const Objective& objective, bool of_bound) {
    at::Tensor output = draw({2, 8, 3, 3}, at::kDouble, 5).requires_grad_();
    const Process process(objective);
    DiffusionInput whole = in;
    whole.sigmas = in.times / 1000;
    const Process::Losses losses = process.losses(output, in.clean, whole);
    const at::Tensor loss =
        of_bound ? losses.total - process.losses(output, in.clean, whole).square : losses.total;
    return torch::autograd::grad({loss.sum()}, {output})[0];
  };
  const at::Tensor with = gradient({.variational_bound = true}, false), plain = gradient({}, false);
  CHECK(at::allclose(with.narrow(1, 0, 4), plain.narrow(1, 0, 4), 1e-12, 1e-14));
  CHECK(with.narrow(1, 4, 4).abs().min().item<double>() > 0);
  CHECK(plain.narrow(1, 4, 4).abs().max().item<double>() == 0);
  const at::Tensor flow = gradient({.prediction = Prediction::kVelocity}, false);
  CHECK(flow.narrow(1, 4, 4).abs().max().item<double>() == 0);
}

TEST_CASE("C54: a flow's x_t and target") {
  const Process process(Objective{.prediction = Prediction::kVelocity});
  DiffusionInput in;
  in.clean = at::full({1, 1, 1, 1}, 2.0, at::kDouble);
  in.noise = at::full({1, 1, 1, 1}, -1.0, at::kDouble);
  in.sigmas = at::full({1}, .25, at::kDouble);
  CHECK(process.noisy(in.clean, in).item<double>() == 1.25);
  // The squared error of a prediction is 0 where it is noise - clean = -3.
  CHECK(process.losses(at::full({1, 1, 1, 1}, -3.0, at::kDouble), in.clean, in)
            .total.item<double>() == 0);
  CHECK(
      process.losses(at::full({1, 1, 1, 1}, 3.0, at::kDouble), in.clean, in).total.item<double>() ==
      36);
}

TEST_CASE("flow weights") {
  DiffusionInput in = input_of({0, 0}, {2, 2, 1, 1});
  in.sigmas = at::tensor({.5, .8}, at::kDouble);
  const at::Tensor output = draw({2, 2, 1, 1}, at::kDouble, 4);
  const auto losses = [&](FlowWeight weight) {
    return Process({.prediction = Prediction::kVelocity, .weight = weight})
        .losses(output, in.clean, in)
        .total;
  };
  const at::Tensor plain = losses(FlowWeight::kNone);
  CHECK(at::allclose(losses(FlowWeight::kSigmaSquare),
                     plain * at::tensor({4., 1.5625}, at::kDouble)));
  const double first = 2 / (std::numbers::pi * .5), second = 2 / (std::numbers::pi * .68);
  CHECK(
      at::allclose(losses(FlowWeight::kCosmap), plain * at::tensor({first, second}, at::kDouble)));
}

TEST_CASE("flow weights: sigma^-2 has a floor, so that no draw weighs without limit") {
  const std::vector<double> sigmas{0, 1e-4, 1e-3, 2e-3};
  DiffusionInput in = input_of({0, 0, 0, 0}, {4, 2, 1, 1});
  in.sigmas = at::tensor(sigmas, at::kDouble);
  const at::Tensor output = draw({4, 2, 1, 1}, at::kDouble, 4);
  const auto losses = [&](FlowWeight weight, int64_t steps) {
    return Process({.prediction = Prediction::kVelocity, .steps = steps, .weight = weight})
        .losses(output, in.clean, in)
        .total;
  };
  const at::Tensor plain = losses(FlowWeight::kNone, 1000);
  CHECK(at::allclose(losses(FlowWeight::kSigmaSquare, 1000) / plain,
                     at::tensor({1e6, 1e6, 1e6, 2.5e5}, at::kDouble)));
  CHECK(at::allclose(losses(FlowWeight::kSigmaSquare, 500) / plain,
                     at::tensor({2.5e5, 2.5e5, 2.5e5, 2.5e5}, at::kDouble)));
}

TEST_CASE("a shift of a picture's patches keeps what is lost at each sigma") {
  const Objective objective{.prediction = Prediction::kVelocity, .shift = 3, .shift_patches = 256};
  CHECK(objective.shift_factor(256) == 1);
  CHECK(objective.shift_factor(1024) == 2);
  CHECK(objective.shift_factor(64) == .5);
  CHECK(Objective{}.shift_factor(1024) == 1);
  CHECK_THROWS_AS((Objective{.shift_patches = -1}.check()), UsageError);
}

TEST_CASE("v-prediction: the target, and the way back to picture and noise") {
  const Process process(Objective{.prediction = Prediction::kV});
  const DiffusionInput in = input_of({0, 400}, {2, 3, 2, 2});
  const auto& schedule = process.schedule();
  for (int64_t i : {0, 1}) {
    const auto t = in.times[i].item<int64_t>();
    const at::Tensor v =
        schedule.sqrt_alpha_bar[t] * in.noise[i] - schedule.sqrt_one_minus[t] * in.clean[i];
    const at::Tensor x = process.noisy(in.clean, in)[i];
    const Process::Split split = process.split(x, v, schedule.alpha_bar[t]);
    CHECK(at::allclose(split.clean, in.clean[i], 1e-12, 1e-13));
    CHECK(at::allclose(split.noise, in.noise[i], 1e-12, 1e-13));
    at::Tensor output = at::zeros_like(in.clean);
    output[i].copy_(v);
    CHECK(process.losses(output, in.clean, in).total[i].item<double>() < 1e-25);
  }
  const Process noise{Objective{}};
  const Process::Split split =
      noise.split(noise.noisy(in.clean, in)[1], in.noise[1], schedule.alpha_bar[400]);
  CHECK(at::allclose(split.clean, in.clean[1], 1e-10, 1e-12));
}

TEST_CASE("min-SNR caps what easy steps weigh") {
  const DiffusionInput in = input_of({3, 900}, {2, 3, 2, 2});
  const at::Tensor output = draw({2, 3, 2, 2}, at::kDouble, 4);
  const auto ratio = [&](Prediction prediction) {
    const at::Tensor plain = Process({.prediction = prediction}).losses(output, in.clean, in).total;
    return Process({.prediction = prediction, .min_snr_gamma = 5})
               .losses(output, in.clean, in)
               .total /
           plain;
  };
  const NoiseSchedule schedule(betas_of(BetaCurve::kLinear, 1000));
  const at::Tensor of_noise = ratio(Prediction::kNoise), of_v = ratio(Prediction::kV);
  CHECK(of_noise[0].item<double>() == doctest::Approx(5 / schedule.snr(3)));
  CHECK(of_noise[1].item<double>() == doctest::Approx(1));
  CHECK(of_v[0].item<double>() == doctest::Approx(5 / (schedule.snr(3) + 1)));
  CHECK(of_v[1].item<double>() == doctest::Approx(schedule.snr(900) / (schedule.snr(900) + 1)));
}

TEST_CASE("the bound is 0 where the model says the posterior, and never negative") {
  const Process process(Objective{.variational_bound = true});
  const DiffusionInput in = input_of({1, 500, 999}, {3, 2, 2, 2});
  // v = -1 is the posterior's variance; the true noise gives its mean.
  const at::Tensor exact = at::cat({in.noise, at::full_like(in.noise, -1)}, 1);
  CHECK(process.losses(exact, in.clean, in).total.abs().max().item<double>() < 1e-10);
  const at::Tensor other = draw({3, 4, 2, 2}, at::kDouble, 8);
  CHECK(process.losses(other, in.clean, in).variance_term.min().item<double>() > 0);
}

TEST_CASE("per element a picture weighs as many times more as it has numbers") {
  const DiffusionInput in = input_of({30, 800}, {2, 3, 4, 2});
  const at::Tensor output = draw({2, 6, 4, 2}, at::kDouble, 8);
  const Objective mean{.variational_bound = true},
      sum{.variational_bound = true, .per_element = true};
  CHECK(at::allclose(Process(sum).losses(output, in.clean, in).total,
                     24 * Process(mean).losses(output, in.clean, in).total));
}

TEST_CASE("losses of no picture are empty") {
  const Process process(Objective{.variational_bound = true});
  const DiffusionInput in = input_of({}, {0, 3, 4, 2});
  const Process::Losses losses = process.losses(at::empty({0, 6, 4, 2}, at::kDouble), in.clean, in);
  CHECK(losses.total.sizes() == at::IntArrayRef({0}));
  CHECK(losses.total.sum().item<double>() == 0);
}

TEST_CASE("objectives that do not go together are refused by name") {
  const auto refused = [](const Objective& objective, const char* word) {
    CHECK_THROWS_WITH_AS(objective.check(), doctest::Contains(word), UsageError);
  };
  refused({.prediction = Prediction::kVelocity, .variational_bound = true}, "flow");
  refused({.prediction = Prediction::kVelocity, .min_snr_gamma = 5}, "flow");
  refused({.zero_terminal = true}, "v-prediction");
  refused({.steps = 1}, "steps");
  refused({.shift = 0}, "shift");
  refused({.density_deviation = -1}, "deviation");
  refused({.min_snr_gamma = -1}, "gamma");
  Objective{.prediction = Prediction::kV, .zero_terminal = true}.check();
}
