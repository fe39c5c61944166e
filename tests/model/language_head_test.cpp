#include "lib/model/language_head.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/model/cross_entropy.h"
#include "lib/model/kv_cache.h"
#include "lib/model/norms.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

struct Head {
  Model model;
  ParamId table = -1;
  Batch batch;
  at::Tensor x;

  Head() {
    const TextConfig config = tiny_config().text;
    table = model.add_param({.name = "table", .shape = {config.vocab, config.hidden}});
    add_language_head(model, config, "", model.add_slot("x"), table);
    batch.cu_seqlens = {0, 2, 5};
    batch.targets = at::tensor(std::vector<int64_t>{7, kNoTarget, 3, 4, kNoTarget}, at::kLong);
    at::manual_seed(8);
    x = at::randn({5, config.hidden}, at::kDouble);
  }
  std::vector<at::Tensor> run(KvCache* cache = nullptr) const {
    const SimpleParams params = lively_params(model, 3);
    const std::vector<at::Tensor> in{x};
    return std::get<Segment>(model.blocks[0].steps[0]).forward({params, batch, cache}, in);
  }
  at::Tensor all_logits() const {
    const SimpleParams params = lively_params(model, 3);
    const at::Tensor weight = params.get(find_param(model, "lm_head.weight")).detach();
    const at::Tensor norm = params.get(find_param(model, "model.norm.weight")).detach();
    return at::linear(rms_norm_reference(x, norm, tiny_config().text.norm_eps), weight);
  }
};

}  // namespace

TEST_CASE(
    "the head sums the cross entropy of target rows and writes logits only when they are wanted") {
  Head head;
  const at::Tensor want = at::cross_entropy_loss(head.all_logits(), head.batch.targets, {},
                                                 at::Reduction::Sum, kNoTarget);
  const auto plain = head.run();
  CHECK(plain[0].item<double>() == doctest::Approx(want.item<double>()).epsilon(1e-12));
  CHECK(plain[1].sizes() == at::IntArrayRef({0, 50}));
  head.batch.want_logits = true;
  const auto with = head.run();
  CHECK(at::equal(with[0], plain[0]));
  CHECK(relative(with[1], head.all_logits()) < 1e-13);
  CHECK(!with[1].requires_grad());
}

TEST_CASE(
    "the head multiplies each target's loss by its weight and tells each sample's plain sum") {
  Head head;
  const at::Tensor chances = at::log_softmax(head.all_logits(), 1);
  const auto cost = [&](int64_t row, int64_t target) {
    return -chances[row][target].item<double>();
  };
  const std::vector<at::Tensor> plain = head.run();
  REQUIRE(plain[2].sizes() == at::IntArrayRef({2}));
  CHECK(plain[2][0].item<double>() == doctest::Approx(cost(0, 7)).epsilon(1e-12));
  CHECK(plain[2][1].item<double>() == doctest::Approx(cost(2, 3) + cost(3, 4)).epsilon(1e-12));
  CHECK(!plain[2].requires_grad());
  head.batch.target_weights = at::tensor({0.5, 99.0, 2.0, 0.25, 99.0}, at::kDouble);
  const std::vector<at::Tensor> weighted = head.run();
  const double want = 0.5 * cost(0, 7) + 2 * cost(2, 3) + 0.25 * cost(3, 4);
  CHECK(weighted[0].item<double>() == doctest::Approx(want).epsilon(1e-12));
  CHECK(at::equal(weighted[2], plain[2]));
}

TEST_CASE("with a cache the head writes the last row of each sample, or all rows when asked") {
  const Head head;
  KvCache cache(2, 5);
  const at::Tensor last = head.all_logits().index_select(0, at::tensor({1, 4}, at::kLong));
  CHECK(relative(head.run(&cache)[1], last) < 1e-13);
  cache.logits = KvCache::Logits::kAll;
  CHECK(relative(head.run(&cache)[1], head.all_logits()) < 1e-13);
}

TEST_CASE("a tied head declares no weight of its own") {
  TextConfig config = tiny_config().text;
  config.tied_head = true;
  Model model;
  const ParamId table = model.add_param({.name = "table", .shape = {50, 24}});
  add_language_head(model, config, "", model.add_slot("x"), table);
  CHECK(model.params.size() == 2);
  CHECK(std::get<Segment>(model.blocks[0].steps[0]).params == std::vector<ParamId>{1, table});
}
