#include "lib/model/objective_draw.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace mm;
using namespace mm::model;

namespace {

std::vector<double> sigmas_of(const Objective& objective, int count) {
  std::vector<double> sigmas;
  for (int i = 0; i < count; ++i)
    sigmas.push_back(
        draw_time(objective, sample_stream(3, "time", 0, static_cast<uint64_t>(i))).sigma);
  std::ranges::sort(sigmas);
  return sigmas;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

}  // namespace

TEST_CASE("C54: the logit-normal draw has its mean, spread, quartiles and tail") {
  const auto sigmas = sigmas_of({.prediction = Prediction::kVelocity}, 1000000);
  const double mean = mean_of(sigmas);
  double square = 0;
  for (double s : sigmas) square += (s - mean) * (s - mean);
  CHECK(mean == doctest::Approx(.5).epsilon(.002));
  CHECK(std::sqrt(square / 1e6) == doctest::Approx(.2082).epsilon(.005));
  CHECK(sigmas[250000] == doctest::Approx(.3375).epsilon(.005));
  CHECK(sigmas[500000] == doctest::Approx(.5).epsilon(.005));
  CHECK(sigmas[750000] == doctest::Approx(.6625).epsilon(.005));
  const auto below = std::ranges::lower_bound(sigmas, .1) - sigmas.begin();
  CHECK(static_cast<double>(below) / 1e6 == doctest::Approx(.0140).epsilon(.05));
}

TEST_CASE("C54: integer steps are uniform and stay in 0 to 999") {
  std::vector<int> counts(1000, 0);
  for (uint64_t i = 0; i < 200000; ++i) {
    const double t = draw_time({}, sample_stream(3, "time", 0, i)).time;
    REQUIRE(t == std::floor(t));
    REQUIRE(t >= 0);
    REQUIRE(t <= 999);
    ++counts[static_cast<size_t>(t)];
  }
  CHECK(*std::ranges::min_element(counts) > 120);
  CHECK(*std::ranges::max_element(counts) < 290);
  CHECK(time_of({}, 0).time == 0);
  CHECK(time_of({}, 1).time == 999);
}

TEST_CASE("the other densities of flows stay in their range and have their means") {
  for (const FlowDensity density :
       {FlowDensity::kUniform, FlowDensity::kMode, FlowDensity::kCosmap}) {
    const auto sigmas = sigmas_of({.prediction = Prediction::kVelocity, .density = density}, 40000);
    CHECK(sigmas.front() >= 0);
    CHECK(sigmas.back() <= 1);
    CHECK(mean_of(sigmas) == doctest::Approx(.5).epsilon(.02));
  }
  // Mode sampling with a positive scale favours the middle.
  const auto mode =
      sigmas_of({.prediction = Prediction::kVelocity, .density = FlowDensity::kMode}, 40000);
  CHECK(mode[30000] - mode[10000] < .5);
}

TEST_CASE("a shift and the table of a thousand entries change the draw as they say") {
  const Objective plain{.prediction = Prediction::kVelocity},
      shifted{.prediction = Prediction::kVelocity, .shift = 3};
  for (uint64_t i = 0; i < 100; ++i) {
    const Philox stream = sample_stream(3, "time", 0, i);
    const DrawnTime a = draw_time(plain, stream), b = draw_time(shifted, stream);
    CHECK(b.sigma == doctest::Approx(shifted_sigma(a.sigma, 3)));
    CHECK(b.time == doctest::Approx(1000 * b.sigma));
  }
  const Objective table{.prediction = Prediction::kVelocity, .from_table = true};
  CHECK(time_of(table, 0).sigma == 1);
  CHECK(time_of(table, .5).sigma == .5);
  CHECK(time_of(table, 1).sigma == doctest::Approx(.001));
}

TEST_CASE("draws are functions of seed, purpose, epoch and sample alone") {
  const double base = sample_stream(1, "noise", 2, 3).normal(0);
  CHECK(sample_stream(1, "noise", 2, 3).normal(0) == base);
  CHECK(sample_stream(2, "noise", 2, 3).normal(0) != base);
  CHECK(sample_stream(1, "time", 2, 3).normal(0) != base);
  CHECK(sample_stream(1, "noise", 3, 3).normal(0) != base);
  CHECK(sample_stream(1, "noise", 3, 2).normal(0) != base);
}

TEST_CASE("noise is the stream's, in either dtype, and standard normal") {
  const Philox stream = sample_stream(1, "noise", 0, 0);
  at::Tensor wide = at::empty({4, 50, 50}, at::kDouble),
             narrow = at::empty({4, 50, 50}, at::kFloat);
  fill_normal(wide, stream);
  fill_normal(narrow, stream);
  CHECK(at::equal(wide.to(at::kFloat), narrow));
  CHECK(wide.flatten()[7].item<double>() == stream.normal(7));
  CHECK(std::abs(wide.mean().item<double>()) < .03);
  CHECK(wide.std().item<double>() == doctest::Approx(1).epsilon(.02));
}

TEST_CASE("captions are dropped at the asked rate, the same ones every time") {
  int dropped = 0;
  for (uint64_t i = 0; i < 20000; ++i)
    dropped += draws_drop(sample_stream(1, "caption_drop", 0, i), .1) ? 1 : 0;
  CHECK(dropped > 1850);
  CHECK(dropped < 2150);
  CHECK(!draws_drop(sample_stream(1, "caption_drop", 0, 1), 0));
  CHECK(draws_drop(sample_stream(1, "caption_drop", 0, 1), 1));
}

TEST_CASE("fixed times of a validation loss are spread evenly") {
  const auto steps = fixed_times({}, 4);
  CHECK(steps[0].time == 125);
  CHECK(steps[3].time == 875);
  const auto sigmas = fixed_times({.prediction = Prediction::kVelocity, .shift = 3}, 2);
  CHECK(sigmas[0].sigma == doctest::Approx(.5));
  CHECK(sigmas[1].time == doctest::Approx(900));
}
