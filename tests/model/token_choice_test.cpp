#include "lib/model/token_choice.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>

#include "lib/base/error.h"

using namespace mm::model;

namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3 at temperature 1.
const std::vector<float> kLogits{std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};

/// Share of each token over 1000 even values of `uniform`.
std::map<int64_t, double> shares(const Sampling& sampling) {
  std::map<int64_t, double> out;
  for (int i = 0; i < 1000; ++i) out[choose_token(kLogits, sampling, (i + 0.5) / 1000)] += 1e-3;
  return out;
}

void check_shares(const Sampling& sampling, const std::map<int64_t, double>& expected) {
  const auto got = shares(sampling);
  CHECK(got.size() == expected.size());
  for (const auto& [token, share] : expected)
    CHECK(got.at(token) == doctest::Approx(share).epsilon(0.02));
}

}  // namespace

TEST_CASE("choose_token: temperature 0 takes the most likely, the lowest id on a tie") {
  CHECK(choose_token(kLogits, {}, 0.99) == 1);
  const std::vector<float> tie{0, 2, 2};
  CHECK(choose_token(tie, {}, 0.5) == 1);
}

TEST_CASE("choose_token: shares are the softmax of logits / temperature") {
  check_shares({.temperature = 1}, {{0, 0.1}, {1, 0.4}, {2, 0.2}, {3, 0.3}});
  // p^2 over its sum: 0.01, 0.16, 0.04, 0.09 of 0.3.
  check_shares({.temperature = 0.5}, {{0, 1 / 30.}, {1, 16 / 30.}, {2, 4 / 30.}, {3, 9 / 30.}});
}

TEST_CASE(
    "choose_token: top_k and top_p leave the most likely, the one that reaches top_p included") {
  check_shares({.temperature = 1, .top_k = 2}, {{1, 4 / 7.}, {3, 3 / 7.}});
  check_shares({.temperature = 1, .top_p = 0.41}, {{1, 4 / 7.}, {3, 3 / 7.}});
  check_shares({.temperature = 1, .top_p = 0.39}, {{1, 1}});
  check_shares({.temperature = 1, .top_p = 0.75}, {{1, 4 / 9.}, {3, 3 / 9.}, {2, 2 / 9.}});
  // After top_k the rest counts as all: 0.4 of 0.7 does not reach 0.6.
  check_shares({.temperature = 1, .top_p = 0.6, .top_k = 2}, {{1, 4 / 7.}, {3, 3 / 7.}});
  check_shares({.temperature = 1, .top_k = 1}, {{1, 1}});
}

TEST_CASE("choose_token: what is minus infinity never comes; a row of nothing else is our bug") {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> row{never, 0, never};
  for (const double uniform : {0.0, 0.5, 0.999999999}) {
    CHECK(choose_token(row, {.temperature = 2}, uniform) == 1);
  }
  const std::vector<float> none{never, never};
  CHECK_THROWS_AS((void)choose_token(none, {}, 0), mm::InternalError);
}

TEST_CASE("best_tokens: best first, lower ids on ties, no more than there are") {
  const std::vector<double> scores{1, 3, 3, 2};
  CHECK(best_tokens(scores, 3) == std::vector<int64_t>{1, 2, 3});
  CHECK(best_tokens(scores, 9) == std::vector<int64_t>{1, 2, 3, 0});
}
