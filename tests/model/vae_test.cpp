#include "lib/model/vae.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <array>
#include <memory>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/vae_layers.h"
#include "lib/model/vae_load.h"
#include "tests/base/temp_dir.h"
#include "tests/model/operation_check.h"
#include "tests/model/stored_tensors.h"

using namespace mm::model;
using namespace mm::model::test;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

const std::filesystem::path kFolder = std::filesystem::path(MM_TEST_DATA) / "oracles/vae";

at::Tensor picture(int64_t count, int64_t height = 16, int64_t width = 24) {
  return draw({count, 3, height, width}, at::kFloat, 3).clamp(-1, 1);
}

void rename(std::vector<StoredTensor>& tensors, const std::string& from, const std::string& to,
            bool as_convolution) {
  for (StoredTensor& tensor : tensors) {
    const size_t at = tensor.name.find(from);
    if (at == std::string::npos) continue;
    tensor.name.replace(at, from.size(), to);
    if (as_convolution && tensor.value.dim() == 2)
      tensor.value = tensor.value.unsqueeze(2).unsqueeze(3);
  }
}

}  // namespace

TEST_CASE("C52: latents are shifted, then scaled, by what the VAE's own config.json says") {
  struct Published {
    double scale, shift;
    std::array<double, 4> want;
  };
  const at::Tensor z = at::tensor({-2.0, 0.0, 1.0, 4.0}, at::kDouble);
  for (const Published& p : {Published{1.5305, .0609, {-3.154207, -.093207, 1.437293, 6.028793}},
                             Published{.3611, .1159, {-.764051, -.041851, .319249, 1.402549}},
                             Published{.18215, 0, {-.364300, 0, .182150, .728600}},
                             Published{.13025, 0, {-.260500, 0, .130250, .521000}}}) {
    mm::Json json = to_json(VaeConfig{});
    json["scaling_factor"] = p.scale;
    if (p.shift != 0) json["shift_factor"] = p.shift;
    const VaeConfig config = vae_config_from_json(json, "config.json");
    const at::Tensor got = scaled_latents(config, z);
    for (int i = 0; i < 4; ++i)
      CHECK(got[i].item<double>() == doctest::Approx(p.want[static_cast<size_t>(i)]).epsilon(1e-6));
    CHECK(relative(unscaled_latents(config, got), z) < 1e-14);
  }
}

TEST_CASE("C52: latents made in front of a transformer equal those that were stored before") {
  LoadedVae loaded = load_vae(kFolder);
  loaded.config.shift = 0.3;
  const Vae vae(loaded.config, loaded.values, at::kFloat);
  Model model;
  const Slot latents = add_vae_encoder(model, loaded.config, "vae.", 2);
  std::vector<at::Tensor> values;
  for (const ParamSpec& spec : model.params)
    values.push_back(loaded.values[static_cast<size_t>(&spec - model.params.data())]);
  const SimpleParams params(model, values, std::vector<bool>(values.size(), false));
  Batch batch;
  batch.pixel_values = picture(3);
  auto input = std::make_shared<DiffusionInput>();
  input->latent_noise = draw({3, 4, 4, 6}, at::kFloat, 8);
  const at::NoGradGuard no_grad;
  const Posterior q = posterior_of(vae.moments(batch.pixel_values));
  CHECK(at::equal(eager_forward(model, params, batch)[latents],
                  scaled_latents(loaded.config, q.mean)));
  batch.diffusion = input;
  const at::Tensor drawn = eager_forward(model, params, batch)[latents];
  CHECK(at::equal(drawn, scaled_latents(loaded.config, q.sample(input->latent_noise))));
  CHECK(relative(vae.decode(drawn), vae.decode(scaled_latents(loaded.config, q.mean))) > 1e-3);
}

TEST_CASE("a picture's latents do not depend on its neighbours, and none give none") {
  const LoadedVae loaded = load_vae(kFolder);
  const Vae vae(loaded.config, loaded.values, at::kFloat);
  const at::NoGradGuard no_grad;
  const at::Tensor all = picture(3), moments = vae.moments(all);
  CHECK(relative(vae.moments(all.narrow(0, 1, 1)), moments.narrow(0, 1, 1)) < 1e-6);
  CHECK(vae.moments(all.narrow(0, 0, 0)).sizes() == at::IntArrayRef({0, 8, 4, 6}));
  CHECK(vae.decode(at::zeros({0, 4, 4, 6})).sizes() == at::IntArrayRef({0, 3, 16, 24}));
}

TEST_CASE("sides that are no multiple of the factor are refused") {
  const LoadedVae loaded = load_vae(kFolder);
  const Vae vae(loaded.config, loaded.values, at::kFloat);
  CHECK(message_of<mm::UsageError>([&] {
          vae.moments(picture(1, 18, 24));
        }).find("24 x 18 pixels; this VAE takes multiples of 4") != std::string::npos);
}

TEST_CASE("the middle attention is read in either spelling and as 1x1 convolutions") {
  const LoadedVae present = load_vae(kFolder);
  for (const bool convolutions : {false, true}) {
    const TempDir directory;
    copy_changed(kFolder, directory.path(), [&](std::vector<StoredTensor>& tensors) {
      rename(tensors, ".to_q.", ".query.", convolutions);
      rename(tensors, ".to_k.", ".key.", convolutions);
      rename(tensors, ".to_v.", ".value.", convolutions);
      rename(tensors, ".to_out.0.", ".proj_attn.", convolutions);
    });
    const LoadedVae old = load_vae(directory.path());
    REQUIRE(old.values.size() == present.values.size());
    for (size_t i = 0; i < old.values.size(); ++i)
      CHECK(at::equal(old.values[i], present.values[i]));
  }
}

TEST_CASE("fp16: the middle attention runs in fp32, scores beyond fp16's range do no harm") {
  Model model;
  const PixelAttention layer = VaeDeclare(model, "", 2).attention("a", 8);
  std::vector<at::Tensor> values;
  for (const ParamSpec& spec : model.params) {
    const bool wide = spec.name.find("to_q.weight") != std::string::npos ||
                      spec.name.find("to_k.weight") != std::string::npos;
    values.push_back(draw(spec.shape, at::kHalf, values.size()) * (wide ? 200 : 1));
  }
  const SimpleParams params(model, std::move(values),
                            std::vector<bool>(model.params.size(), false));
  const at::Tensor out = apply(layer, params, draw({2, 8, 3, 3}, at::kHalf, 20));
  CHECK((out.scalar_type() == at::kHalf));
  CHECK(at::isfinite(out).all().item<bool>());
}

TEST_CASE("strides of 2 see one row and column of zeros on the right and below only") {
  Model model;
  VaeDeclare declare(model, "v.", 1);
  const Convolution conv = declare.conv("c", {1, 1}, 3, 2);
  at::Tensor weight = at::zeros({1, 1, 3, 3});
  weight[0][0][0][0] = 1;  // the window's first corner
  const SimpleParams params(model, {weight, at::zeros({1})}, {false, false});
  const at::Tensor x = at::arange(16, at::kFloat).view({1, 1, 4, 4});
  CHECK(at::equal(apply(conv, params, x).flatten(), at::tensor({0.F, 2.F, 8.F, 10.F})));
}

TEST_CASE("the variance's logarithm is clamped, and noise multiplies its square root") {
  const at::Tensor moments = at::tensor({1.0, -100.0, 2.0, 100.0, 3.0, 0.0}).view({3, 2, 1, 1});
  const Posterior q = posterior_of(moments);
  CHECK(at::equal(q.log_variance.flatten(), at::tensor({-30.0, 20.0, 0.0})));
  const at::Tensor drawn = q.sample(at::full({3, 1, 1, 1}, 2.0, at::kDouble)).flatten();
  CHECK(drawn[2].item<double>() == doctest::Approx(5.0));
  CHECK(at::equal(q.sample({}), q.mean));
}
