#include "lib/model/vae_training.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/flops.h"
#include "lib/model/vae.h"
#include "tests/base/temp_dir.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;
using mm::test::message_of;

namespace {

VaeConfig tiny() {
  return {.latent_channels = 2, .channels = {4, 8}, .layers_per_block = 1, .groups = 2};
}

Batch batch_of(int64_t pictures, at::ScalarType dtype = at::kDouble) {
  auto input = std::make_shared<DiffusionInput>();
  input->clean = draw({pictures, 3, 8, 12}, dtype, 5).clamp(-1, 1);
  input->noise = draw({pictures, 2, 4, 6}, dtype, 6);
  Batch batch;
  batch.diffusion = input;
  batch.sizes = {.samples = pictures, .images = pictures, .patches = 96, .targets = pictures};
  return batch;
}

DiffusionInput& input_of(Batch& batch) {
  auto changed = std::make_shared<DiffusionInput>(*batch.diffusion);
  batch.diffusion = changed;
  return *changed;
}

double loss_of(const Model& model, const ParamView& params, const Batch& batch) {
  return eager_forward(model, params, batch)[model.loss_slot].item<double>();
}

}  // namespace

TEST_CASE("the loss is error plus weighted divergence over the numbers of a picture") {
  for (const auto error : {VaeLoss::Error::kAbsolute, VaeLoss::Error::kSquared}) {
    const Model model = build_vae(tiny(), {.error = error, .kl_weight = 0.25});
    const SimpleParams params = lively_params(model, 2);
    const Batch batch = batch_of(2);
    const SlotValues slots = eager_forward(model, params, batch);
    const Posterior q = posterior_of(slots[find_slot(model, "vae.encoder.out")]);
    const at::Tensor z = q.mean + (q.log_variance / 2).exp() * batch.diffusion->noise;
    CHECK(relative(slots[find_slot(model, "vae.z")], z) < 1e-14);
    const at::Tensor gap = slots[find_slot(model, "vae.decoder.out")] - batch.diffusion->clean;
    const at::Tensor each = error == VaeLoss::Error::kAbsolute ? gap.abs() : gap * gap;
    const at::Tensor kl = (q.mean * q.mean + q.log_variance.exp() - 1 - q.log_variance) / 2;
    const at::Tensor want = (each.sum({1, 2, 3}) + 0.25 * kl.sum({1, 2, 3})) / (3.0 * 8 * 12);
    CHECK(relative(slots[model.sample_losses_slot], want) < 1e-13);
    CHECK(slots[model.loss_slot].item<double>() == doctest::Approx(want.sum().item<double>()));
  }
}

TEST_CASE("a picture of weight 0 changes neither the loss nor any gradient") {
  const Model model = build_vae(tiny());
  SimpleParams one = lively_params(model, 2), two = lively_params(model, 2);
  Batch whole = batch_of(2);
  DiffusionInput& input = input_of(whole);
  input.weights = at::tensor({1.0, 0.0}, at::kDouble);
  Batch first = whole;
  DiffusionInput& alone = input_of(first);
  alone.clean = input.clean.narrow(0, 0, 1);
  alone.noise = input.noise.narrow(0, 0, 1);
  alone.weights = at::Tensor();
  const auto a = eager_train({model, one, one.trainable(), one}, first);
  const auto b = eager_train({model, two, two.trainable(), two}, whole);
  CHECK(relative(b[model.loss_slot], a[model.loss_slot]) < 1e-12);
  double largest = 0;
  for (ParamId id = 0; id < static_cast<ParamId>(model.params.size()); ++id)
    largest = std::max(largest, grad_or_zero(model, one, id).norm().item<double>());
  for (ParamId id = 0; id < static_cast<ParamId>(model.params.size()); ++id) {
    const at::Tensor want = grad_or_zero(model, one, id);
    // Biases of keys have none but for rounding.
    const double bound = std::max(want.norm().item<double>(), 1e-6 * largest);
    CHECK((grad_or_zero(model, two, id) - want).norm().item<double>() < 1e-9 * bound);
  }
}

TEST_CASE("gradients are those of finite differences, through the draw and the divergence") {
  const Model model = build_vae(tiny(), {.error = VaeLoss::Error::kSquared, .kl_weight = 0.1});
  SimpleParams params = lively_params(model, 4);
  const Batch batch = batch_of(2);
  eager_train({model, params, params.trainable(), params}, batch);
  for (const char* name :
       {"encoder.conv_in.weight", "encoder.mid_block.attentions.0.to_k.weight", "quant_conv.bias",
        "decoder.up_blocks.0.upsamplers.0.conv.weight", "decoder.conv_norm_out.bias"}) {
    CAPTURE(name);
    const ParamId id = find_param(model, name);
    const at::NoGradGuard no_grad;
    at::Tensor place = params.get(id).view(-1);
    const double step = 1e-5, was = place[0].item<double>();
    place[0] = was + step;
    const double up = loss_of(model, params, batch);
    place[0] = was - step;
    const double down = loss_of(model, params, batch);
    place[0] = was;
    const double want = (up - down) / (2 * step), got = params.grad(id).view(-1)[0].item<double>();
    CHECK(got == doctest::Approx(want).epsilon(1e-5));
  }
}

TEST_CASE("a micro-batch without pictures has loss and gradients of zero") {
  const Model model = build_vae(tiny());
  SimpleParams params = lively_params(model, 2);
  const auto slots = eager_train({model, params, params.trainable(), params}, batch_of(0));
  CHECK(slots[model.loss_slot].item<double>() == 0);
  CHECK(slots[model.sample_losses_slot].size(0) == 0);
  for (ParamId id = 0; id < static_cast<ParamId>(model.params.size()); ++id)
    CHECK(grad_or_zero(model, params, id).abs().sum().item<double>() == 0);
}

TEST_CASE("a small VAE learns to give a picture back") {
  const Model model = build_vae(tiny(), {.error = VaeLoss::Error::kSquared});
  SimpleParams params = SimpleParams::random(model, 1, at::kFloat);
  const Batch batch = batch_of(2, at::kFloat);
  double before = 0, after = 0;
  for (int step = 0; step < 60; ++step) {
    params.clear_grads();
    const auto slots = eager_train({model, params, params.trainable(), params, 0.5}, batch);
    after = slots[model.loss_slot].item<double>();
    if (step == 0) before = after;
    const at::NoGradGuard no_grad;
    for (ParamId id = 0; id < static_cast<ParamId>(model.params.size()); ++id)
      params.get(id).sub_(params.grad(id) * 0.3);
  }
  CHECK(after < 0.7 * before);
}

TEST_CASE("costs count the encoder's and the decoder's products") {
  const VaeConfig config{.channels = {4},
                         .layers_per_block = 1,
                         .groups = 2,
                         .mid_attention = false,
                         .quant_conv = false,
                         .post_quant_conv = false};
  const Model model = build_vae(config);
  const Sizes sizes{.images = 2, .patches = 100};
  // Multiply-adds a pixel: encoder 3->4, three ResNets of two 4->4, 4->8; decoder 4->4, four
  // ResNets, 4->3; all 3x3.
  const double each = 9.0 * (12 + 3 * 32 + 32 + 16 + 4 * 32 + 12);
  CHECK(model_flops(model, sizes, std::vector<bool>(model.params.size(), true)).forward ==
        2 * each * 200);
}

TEST_CASE("all parameters are read and belong to the VAE") {
  const Model model = build_vae(tiny());
  for (const ParamSpec& spec : model.params) CHECK(spec.part == Part::kVae);
  for (const bool used : params_in_use(model)) CHECK(used);
}

TEST_CASE("VAE config: what is not supported is refused by name") {
  const auto refused = [](const char* key, const mm::Json& value) {
    mm::Json json = to_json(tiny());
    json[key] = value;
    return message_of<mm::DataError>([&] { vae_config_from_json(json, "config.json"); });
  };
  const auto names = [](const std::string& message, const char* part) {
    return message.find(part) != std::string::npos;
  };
  CHECK(names(refused("_class_name", "AutoencoderDC"), "AutoencoderKL"));
  CHECK(names(refused("act_fn", "relu"), "act_fn"));
  CHECK(names(refused("norm_num_groups", 3), "no multiple of norm_num_groups 3"));
  CHECK(names(refused("down_block_types", {"AttnDownEncoderBlock2D", "DownEncoderBlock2D"}),
              "DownEncoderBlock2D"));
  CHECK(names(refused("latents_mean", {0.1, 0.2}), "latents_mean"));
  CHECK(names(refused("shift_factor", "much"), "shift_factor"));
  CHECK(names(refused("scaling_factor", 0), "scaling_factor"));
  CHECK(names(refused("block_out_channels", mm::Json::array()), "block_out_channels"));
  const VaeConfig again = vae_config_from_json(to_json(tiny()), "config.json");
  CHECK(to_json(again) == to_json(tiny()));
  CHECK(again.factor() == 2);
}
