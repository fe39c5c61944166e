#include "lib/model/generate.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

struct Fixture {
  LlavaConfig config = tiny_config();
  Model model = build_llava(config);
  SimpleParams params = lively_params(model, 7);

  /// Greedy by running the whole text again for every token.
  std::vector<int64_t> by_definition(TinySample sample, int64_t count, int64_t stop) const {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count; ++i) {
      Batch batch = tiny_batch(config, {sample});
      batch.want_logits = true;
      const at::Tensor logits = eager_forward(model, params, batch)[model.logits_slot];
      const auto token = logits[-1].argmax().item<int64_t>();
      if (token == stop) break;
      out.push_back(token);
      sample.text.push_back(token);
    }
    return out;
  }
};

const std::vector<TinySample> kPrompts{{1, {1, 12}}, {2, {3}}, {0, {1, 22, 23, 24, 25}}};

}  // namespace

TEST_CASE("greedy generation with a cache equals running the whole text again for every token") {
  const Fixture f;
  const auto got =
      generate(f.model, f.params, tiny_batch(f.config, kPrompts), {.max_new_tokens = 9});
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(got[i] == f.by_definition(kPrompts[i], 9, -1));
}

TEST_CASE("a stop token ends its sample only and is not part of the result") {
  const Fixture f;
  const int64_t stop = f.by_definition(kPrompts[0], 9, -1)[2];
  const auto got = generate(f.model, f.params, tiny_batch(f.config, kPrompts),
                            {.max_new_tokens = 9, .stop_tokens = {stop}});
  for (size_t i = 0; i < 3; ++i) CHECK(got[i] == f.by_definition(kPrompts[i], 9, stop));
  CHECK(got[0].size() == 2);
}

TEST_CASE("a banned token is never chosen, and no tokens asked give none") {
  const Fixture f;
  const Batch prompts = tiny_batch(f.config, kPrompts);
  const int64_t first = f.by_definition(kPrompts[0], 1, -1)[0];
  const auto got =
      generate(f.model, f.params, prompts, {.max_new_tokens = 5, .banned_tokens = {first}});
  for (const auto& sample : got) CHECK(std::ranges::find(sample, first) == sample.end());
  CHECK(generate(f.model, f.params, prompts, {.max_new_tokens = 0}) ==
        std::vector<std::vector<int64_t>>(3));
  CHECK_THROWS_AS(generate(f.model, f.params, tiny_batch(f.config, {{0, {}}}), {}),
                  mm::InternalError);
}

TEST_CASE("sampled text depends on the sample's own key and the seed, not on the batch") {
  const Fixture f;
  GenerateOptions options{.max_new_tokens = 8, .sampling = {.temperature = 1.5, .top_p = 0.95}};
  options.sample_ids = {70, 80, 90};
  const auto all = generate(f.model, f.params, tiny_batch(f.config, kPrompts), options);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    GenerateOptions alone = options;
    alone.sample_ids = {options.sample_ids[i]};
    CHECK(generate(f.model, f.params, tiny_batch(f.config, {kPrompts[i]}), alone)[0] == all[i]);
  }
  options.seed = 1;
  CHECK(generate(f.model, f.params, tiny_batch(f.config, kPrompts), options) != all);
}

TEST_CASE("top_k 1 is greedy at any temperature; samples that stop leave the batch") {
  const Fixture f;
  const int64_t stop = f.by_definition(kPrompts[2], 9, -1)[1];
  const auto got = generate(
      f.model, f.params, tiny_batch(f.config, kPrompts),
      {.max_new_tokens = 7, .stop_tokens = {stop}, .sampling = {.temperature = 3, .top_k = 1}});
  for (size_t i = 0; i < 3; ++i) CHECK(got[i] == f.by_definition(kPrompts[i], 7, stop));
}

namespace {

/// Sum of log-probabilities of `tokens` behind a sample.
double log_likelihood(const Fixture& f, TinySample sample, const std::vector<int64_t>& tokens) {
  double sum = 0;
  for (const int64_t token : tokens) {
    Batch batch = tiny_batch(f.config, {sample});
    batch.want_logits = true;
    const at::Tensor logits = eager_forward(f.model, f.params, batch)[f.model.logits_slot];
    sum += at::log_softmax(logits[-1].to(at::kDouble), 0)[token].item<double>();
    sample.text.push_back(token);
  }
  return sum;
}

}  // namespace

TEST_CASE("a beam as wide as the vocabulary finds the most likely pair of tokens; batches agree") {
  const Fixture f;
  const GenerateOptions options{.max_new_tokens = 2, .beams = 50};
  const auto got = generate(f.model, f.params, tiny_batch(f.config, kPrompts), options);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    const double found = log_likelihood(f, kPrompts[i], got[i]);
    double best = -1e9;
    for (int64_t first = 0; first < 50; ++first) {
      TinySample longer = kPrompts[i];
      longer.text.push_back(first);
      const auto second = f.by_definition(longer, 1, -1)[0];
      best = std::max(best, log_likelihood(f, kPrompts[i], {first, second}));
    }
    CHECK(found == doctest::Approx(best));
    CHECK(generate(f.model, f.params, tiny_batch(f.config, {kPrompts[i]}), options)[0] == got[i]);
  }
}

TEST_CASE("beams end with a stop token, by score over length") {
  const Fixture f;
  const Batch prompt = tiny_batch(f.config, {kPrompts[1]});
  const int64_t first = f.by_definition(kPrompts[1], 1, -1)[0];
  // Nothing is left when the likeliest first token ends the sample and later ones cannot beat it.
  GenerateOptions options{.max_new_tokens = 6, .stop_tokens = {first}, .beams = 2};
  options.length_penalty = 0;
  CHECK(generate(f.model, f.params, prompt, options)[0].empty());
  options.length_penalty = 8;  // long ones are worth more
  CHECK_FALSE(generate(f.model, f.params, prompt, options)[0].empty());
}
