#include "lib/model/vision_tower.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

struct Tower {
  VisionConfig config;
  Model model;
  Slot out;

  explicit Tower(VisionConfig c, int64_t layers_run)
      : config(c), out(add_vision_tower(model, config, "v.", layers_run)) {}
  at::Tensor run(const at::Tensor& pixels) const {
    Batch batch;
    batch.pixel_values = pixels;
    return eager_forward(model, lively_params(model, 3), batch)[out];
  }
  at::Tensor param(const std::string& name) const {
    return lively_params(model, 3).get(find_param(model, "v." + name)).detach();
  }
};

at::Tensor pixels(int64_t images, int64_t side) {
  at::manual_seed(4);
  return at::randn({images, 3, side, side}, at::kDouble);
}

at::Tensor norm(const Tower& tower, const std::string& name, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, tower.param(name + ".weight"), tower.param(name + ".bias"),
                        tower.config.norm_eps);
}

at::Tensor linear(const Tower& tower, const std::string& name, const at::Tensor& x) {
  return at::linear(x, tower.param(name + ".weight"), tower.param(name + ".bias"));
}

}  // namespace

TEST_CASE(
    "the embedding is a strided convolution without bias, class token first, plus positions, "
    "normalised") {
  const Tower tower(tiny_config().vision, 0);
  const at::Tensor x = pixels(3, 8);
  const at::Tensor patches =
      at::conv2d(x, tower.param("embeddings.patch_embedding.weight"), {}, /*stride=*/4)
          .flatten(2)
          .transpose(1, 2);
  const at::Tensor token =
      tower.param("embeddings.class_embedding").view({1, 1, -1}).expand({3, 1, 16});
  const at::Tensor sum =
      at::cat({token, patches}, 1) + tower.param("embeddings.position_embedding.weight");
  CHECK(relative(tower.run(x), norm(tower, "pre_layrnorm", sum)) < 1e-13);
}

TEST_CASE("pixels beyond the last whole patch are not seen") {
  VisionConfig config = tiny_config().vision;
  config.image_size = 11;
  const Tower tower(config, 1);
  at::Tensor x = pixels(1, 11);
  const at::Tensor before = tower.run(x);
  CHECK(before.size(1) == 5);
  x.narrow(2, 8, 3).fill_(9);
  x.narrow(3, 8, 3).fill_(9);
  CHECK(at::equal(before, tower.run(x)));
}

TEST_CASE("a layer is attention and quick-GELU MLP, each behind a norm and added to its input") {
  const Tower before(tiny_config().vision, 0), after(tiny_config().vision, 1);
  const at::Tensor x = before.run(pixels(2, 8)),
                   at_norm = norm(after, "encoder.layers.0.layer_norm1", x);
  const auto heads = [&](const std::string& name) {
    return linear(after, "encoder.layers.0.self_attn." + name, at_norm)
        .view({2, 5, 2, 8})
        .transpose(1, 2);
  };
  const at::Tensor weights = at::softmax(
      at::matmul(heads("q_proj"), heads("k_proj").transpose(2, 3)) / std::sqrt(8.0), -1);
  const at::Tensor mixed = at::matmul(weights, heads("v_proj")).transpose(1, 2).reshape({2, 5, 16});
  const at::Tensor h = x + linear(after, "encoder.layers.0.self_attn.out_proj", mixed);
  const at::Tensor inner =
      linear(after, "encoder.layers.0.mlp.fc1", norm(after, "encoder.layers.0.layer_norm2", h));
  const at::Tensor want =
      h + linear(after, "encoder.layers.0.mlp.fc2", inner * at::sigmoid(inner * 1.702));
  CHECK(relative(after.run(pixels(2, 8)), want) < 1e-13);
}

TEST_CASE("the number of layers that run changes the blocks, never the parameters") {
  const Tower one(tiny_config().vision, 1), all(tiny_config().vision, 3);
  CHECK(one.model.blocks.size() == 2);
  CHECK(all.model.blocks.size() == 4);
  REQUIRE(one.model.params.size() == all.model.params.size());
  for (size_t i = 0; i < one.model.params.size(); ++i)
    CHECK(one.model.params[i].name == all.model.params[i].name);
}

TEST_CASE("no pictures give no rows") {
  CHECK(Tower(tiny_config().vision, 2).run(pixels(0, 8)).sizes() == at::IntArrayRef({0, 5, 16}));
}

TEST_CASE("SigLIP: patches with bias, no class token, tanh GELU, a pooling head that is not run") {
  VisionConfig config = tiny_config().vision;
  config.kind = VisionKind::kSiglip;
  config.pooling_head = true;
  const Tower embedding(config, 0), layer(config, 1);
  const at::Tensor x = pixels(3, 8);
  const at::Tensor want =
      at::conv2d(x, embedding.param("embeddings.patch_embedding.weight"),
                 embedding.param("embeddings.patch_embedding.bias"), /*stride=*/4)
          .flatten(2)
          .transpose(1, 2) +
      embedding.param("embeddings.position_embedding.weight");
  CHECK(relative(embedding.run(x), want) < 1e-13);
  CHECK(layer.run(x).sizes() == at::IntArrayRef({3, 4, 16}));
  CHECK(layer.param("head.probe").sizes() == at::IntArrayRef({1, 1, 16}));
  const auto used = params_in_use(layer.model);
  CHECK(!used[find_param(layer.model, "v.head.attention.in_proj_weight")]);
  CHECK_THROWS_AS(find_param(layer.model, "v.pre_layrnorm.weight"), mm::InternalError);
}
