#include "lib/model/generate.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

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
      generate_greedy(f.model, f.params, tiny_batch(f.config, kPrompts), {.max_new_tokens = 9});
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(got[i] == f.by_definition(kPrompts[i], 9, -1));
}

TEST_CASE("a stop token ends its sample only and is not part of the result") {
  const Fixture f;
  const int64_t stop = f.by_definition(kPrompts[0], 9, -1)[2];
  const auto got = generate_greedy(f.model, f.params, tiny_batch(f.config, kPrompts),
                                   {.max_new_tokens = 9, .stop_tokens = {stop}});
  for (size_t i = 0; i < 3; ++i) CHECK(got[i] == f.by_definition(kPrompts[i], 9, stop));
  CHECK(got[0].size() == 2);
}

TEST_CASE("a banned token is never chosen, and no tokens asked give none") {
  const Fixture f;
  const Batch prompts = tiny_batch(f.config, kPrompts);
  const int64_t first = f.by_definition(kPrompts[0], 1, -1)[0];
  const auto got =
      generate_greedy(f.model, f.params, prompts, {.max_new_tokens = 5, .banned_tokens = {first}});
  for (const auto& sample : got) CHECK(std::ranges::find(sample, first) == sample.end());
  CHECK(generate_greedy(f.model, f.params, prompts, {.max_new_tokens = 0}) ==
        std::vector<std::vector<int64_t>>(3));
  CHECK_THROWS_AS(generate_greedy(f.model, f.params, tiny_batch(f.config, {{0, {}}}), {}),
                  mm::InternalError);
}
