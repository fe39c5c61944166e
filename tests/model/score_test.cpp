#include "lib/model/score.h"

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
  TinySample prompt{1, {1, 12, 13}};

  /// By running prompt and continuation as one text.
  double by_definition(const std::vector<int64_t>& continuation) const {
    TinySample sample = prompt;
    sample.text.insert(sample.text.end(), continuation.begin(), continuation.end());
    Batch batch = tiny_batch(config, {sample});
    batch.want_logits = true;
    const at::Tensor rows =
        at::log_softmax(eager_forward(model, params, batch)[model.logits_slot], -1);
    const int64_t begin = batch.sizes.tokens - static_cast<int64_t>(continuation.size()) - 1;
    double sum = 0;
    for (size_t i = 0; i < continuation.size(); ++i) {
      sum += rows[begin + static_cast<int64_t>(i)][continuation[i]].item<double>();
    }
    return sum;
  }
};

const std::vector<std::vector<int64_t>> kNames{
    {5}, {6, 7, 8}, {9, 10}, {6, 7}, {11, 12, 13, 14, 15}};

}  // namespace

TEST_CASE("scores equal those of prompt and continuation as one text, however many run at once") {
  const Fixture f;
  const Batch prompt = tiny_batch(f.config, {f.prompt});
  for (int64_t at_once : {1, 4, 4096}) {
    const auto scores = score_continuations(f.model, f.params, prompt, kNames, at_once);
    REQUIRE(scores.size() == kNames.size());
    for (size_t i = 0; i < kNames.size(); ++i) {
      CAPTURE(i);
      CHECK(scores[i].log_likelihood == doctest::Approx(f.by_definition(kNames[i])).epsilon(1e-10));
      CHECK(scores[i].tokens == static_cast<int64_t>(kNames[i].size()));
      CHECK(scores[i].per_token() == doctest::Approx(scores[i].log_likelihood / scores[i].tokens));
    }
  }
}

TEST_CASE("scoring refuses an empty continuation, an id outside the vocabulary, and two prompts") {
  const Fixture f;
  const Batch prompt = tiny_batch(f.config, {f.prompt}),
              two = tiny_batch(f.config, {f.prompt, f.prompt});
  const std::vector<std::vector<int64_t>> empty{{}}, outside{{50}};
  CHECK_THROWS_AS(score_continuations(f.model, f.params, prompt, empty), mm::InternalError);
  CHECK_THROWS_AS(score_continuations(f.model, f.params, prompt, outside), mm::InternalError);
  CHECK_THROWS_AS(score_continuations(f.model, f.params, two, kNames), mm::InternalError);
  CHECK(score_continuations(f.model, f.params, prompt, {}).empty());
}
