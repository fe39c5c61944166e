#include "lib/model/llava.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/model/cross_entropy.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

struct Fixture {
  LlavaConfig config = tiny_config();
  Model model = build_llava(config);
  std::vector<bool> all = std::vector<bool>(model.params.size(), true);

  SlotValues forward(const std::vector<TinySample>& samples,
                     at::ScalarType dtype = at::kDouble) const {
    Batch batch = tiny_batch(config, samples, dtype);
    batch.want_logits = true;
    return eager_forward(model, lively_params(model, 7, dtype), batch);
  }
  double loss(const std::vector<TinySample>& samples) const {
    return forward(samples)[model.loss_slot].item<double>();
  }
  at::Tensor logits(const std::vector<TinySample>& samples) const {
    return forward(samples)[model.logits_slot];
  }

  /// Gradients of the summed loss of several micro-batches, divided by `targets`.
  SimpleParams train(const std::vector<std::vector<TinySample>>& micro_batches, double targets,
                     const std::vector<bool>& trainable) const {
    SimpleParams start = lively_params(model, 7);
    std::vector<at::Tensor> values;
    for (size_t i = 0; i < model.params.size(); ++i)
      values.push_back(start.get(static_cast<int>(i)));
    SimpleParams params(model, values, trainable);
    for (const auto& samples : micro_batches) {
      eager_train({model, params, trainable, params, 1.0 / targets}, tiny_batch(config, samples));
    }
    return params;
  }
};

const TinySample kPicture{1, {1, 12, 13, 14}}, kText{0, {1, 22, 23}}, kTwo{2, {3, 4}};

}  // namespace

TEST_CASE("a pack of several samples gives the logits and the loss of each alone") {
  const Fixture f;
  const at::Tensor together = f.logits({kPicture, kText, kTwo});
  const at::Tensor apart = at::cat({f.logits({kPicture}), f.logits({kText}), f.logits({kTwo})});
  CHECK(relative(together, apart) < 1e-12);
  CHECK(f.loss({kPicture, kText, kTwo}) ==
        doctest::Approx(f.loss({kPicture}) + f.loss({kText}) + f.loss({kTwo})).epsilon(1e-12));
}

TEST_CASE("C19: packed samples of 3 and 5 tokens do not see each other") {
  const Fixture f;
  const std::vector<TinySample> pack{{0, {11, 12, 13}}, {0, {21, 22, 23, 24, 25}}};
  const Batch batch = tiny_batch(f.config, pack);
  CHECK(at::equal(batch.positions, at::tensor({0, 1, 2, 0, 1, 2, 3, 4}, at::kLong)));
  CHECK(batch.cu_seqlens == std::vector<int64_t>{0, 3, 8});
  CHECK(batch.sizes.attention_pairs == 21);
  const at::Tensor before = f.forward(pack, at::kFloat)[f.model.logits_slot];
  const at::Tensor after = f.forward({{0, {31, 32, 33}}, pack[1]}, at::kFloat)[f.model.logits_slot];
  CHECK((before.narrow(0, 3, 5) - after.narrow(0, 3, 5)).abs().max().item<double>() <= 1e-6);
  CHECK((before.narrow(0, 0, 3) - after.narrow(0, 0, 3)).abs().max().item<double>() > 1e-3);
  const double mean = f.loss(pack) / 6, first = f.loss({pack[0]}) / 2,
               second = f.loss({pack[1]}) / 4;
  CHECK(mean == doctest::Approx((2 * first + 4 * second) / 6).epsilon(1e-12));
}

TEST_CASE("C20: the loss of a pack counts no target across the seam") {
  const Fixture f;
  const std::vector<TinySample> pack{{0, {11, 12, 13}}, {0, {21, 22, 23, 24}}};
  const Batch batch = tiny_batch(f.config, pack);
  CHECK(at::equal(batch.targets, at::tensor({12, 13, -100, 22, 23, 24, -100}, at::kLong)));
  CHECK(batch.sizes.targets == 5);
  const double mean = f.loss(pack) / 5, apart = (f.loss({pack[0]}) + f.loss({pack[1]})) / 5;
  CHECK(std::abs(mean - apart) <= 1e-6 * apart);
}

TEST_CASE(
    "C40: gradients of a picture micro-batch and a text-only one add up to those of both in one "
    "pack") {
  const Fixture f;
  const SimpleParams apart = f.train({{kPicture}, {kText}}, 5, f.all);
  const SimpleParams together = f.train({{kPicture, kText}}, 5, f.all);
  for (size_t i = 0; i < f.model.params.size(); ++i) {
    const auto id = static_cast<ParamId>(i);
    CAPTURE(f.model.params[i].name);
    const at::Tensor want = grad_or_zero(f.model, together, id);
    CHECK((grad_or_zero(f.model, apart, id) - want).norm().item<double>() <=
          1e-12 * (1 + want.norm().item<double>()));
  }
}

TEST_CASE(
    "C40: with text only, the tower gets no gradient through the loss and the language model "
    "does") {
  const Fixture f;
  const SimpleParams params = f.train({{kText}}, 2, f.all);
  for (size_t i = 0; i < f.model.params.size(); ++i) {
    const ParamSpec& spec = f.model.params[i];
    const double norm =
        grad_or_zero(f.model, params, static_cast<ParamId>(i)).norm().item<double>();
    CAPTURE(spec.name);
    CHECK((norm > 0) == (spec.part == Part::kLanguage));
  }
}

TEST_CASE("an empty micro-batch has a loss of zero and changes no gradient") {
  const Fixture f;
  CHECK(f.loss({}) == 0);
  CHECK(f.logits({}).sizes() == at::IntArrayRef({0, 50}));
  const SimpleParams with = f.train({{}, {kPicture}, {}}, 3, f.all),
                     without = f.train({{kPicture}}, 3, f.all);
  for (size_t i = 0; i < f.model.params.size(); ++i) {
    const auto id = static_cast<ParamId>(i);
    CHECK(at::equal(grad_or_zero(f.model, with, id), grad_or_zero(f.model, without, id)));
  }
}

TEST_CASE("a pack whose samples have no target has a loss of zero and zero gradients") {
  const Fixture f;
  const SimpleParams params = f.train({{TinySample{1, {5}}}}, 1, f.all);
  for (size_t i = 0; i < f.model.params.size(); ++i) {
    CHECK(grad_or_zero(f.model, params, static_cast<ParamId>(i)).norm().item<double>() == 0);
  }
}

TEST_CASE("freezing a part leaves the other parts' gradients as they are and yields none for it") {
  const Fixture f;
  std::vector<bool> trainable;
  for (const ParamSpec& spec : f.model.params) trainable.push_back(spec.part == Part::kProjector);
  const SimpleParams some = f.train({{kPicture, kTwo}}, 4, trainable),
                     all = f.train({{kPicture, kTwo}}, 4, f.all);
  for (size_t i = 0; i < f.model.params.size(); ++i) {
    const auto id = static_cast<ParamId>(i);
    CHECK(some.grad(id).defined() == trainable[i]);
    if (trainable[i]) CHECK(relative(some.grad(id), all.grad(id)) < 1e-13);
  }
}

TEST_CASE("gradients agree with finite differences of the loss") {
  const Fixture f;
  const SimpleParams params = f.train({{kPicture, kText}}, 1, f.all);
  const Batch batch = tiny_batch(f.config, {kPicture, kText});
  for (const std::string name : {"vision_tower.vision_model.embeddings.patch_embedding.weight",
                                 "multi_modal_projector.linear_1.bias",
                                 "language_model.model.layers.0.self_attn.k_proj.weight",
                                 "language_model.model.embed_tokens.weight"}) {
    const ParamId id = find_param(f.model, name);
    SimpleParams moved = lively_params(f.model, 7);
    const at::Tensor direction = params.grad(id) / params.grad(id).norm();
    const auto loss_at = [&](double step) {
      const at::NoGradGuard no_grad;
      moved.get(id).add_(direction, step);
      const double loss = eager_forward(f.model, moved, batch)[f.model.loss_slot].item<double>();
      moved.get(id).sub_(direction, step);
      return loss;
    };
    const double slope = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
    CAPTURE(name);
    CHECK(slope == doctest::Approx(params.grad(id).norm().item<double>()).epsilon(1e-6));
  }
}

TEST_CASE("bf16 parameters give a loss near that of float32") {
  const Fixture f;
  const auto loss = [&](at::ScalarType dtype) {
    return f.forward({kPicture, kText, kTwo}, dtype)[f.model.loss_slot].item<double>();
  };
  CHECK(loss(at::kBFloat16) == doctest::Approx(loss(at::kFloat)).epsilon(0.03));
}

TEST_CASE("a tied head reads the embedding table, whose gradient has both uses") {
  LlavaConfig config = tiny_config();
  config.text.tied_head = true;
  const Model model = build_llava(config);
  const ParamId table = find_param(model, "language_model.model.embed_tokens.weight");
  SimpleParams params = lively_params(model, 7);
  eager_train({model, params, params.trainable(), params, 1.0}, tiny_batch(config, {kText}));
  // Row 30 is no input token: only the head's use reaches it. Row 1 is an input token, and also a
  // logit.
  CHECK(params.grad(table)[30].norm().item<double>() > 0);
  CHECK(params.grad(table)[1].norm().item<double>() > 0);
}
