#include "lib/model/time_embedding.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/model/eager.h"

using namespace mm::model;

TEST_CASE("a time becomes cosines, then sines, of falling frequencies") {
  for (const int64_t divisor : {127, 128}) {
    const at::Tensor x = sinusoid(at::tensor({0.0, 3.5}, at::kDouble), divisor);
    REQUIRE(x.sizes() == at::IntArrayRef({2, 256}));
    for (const int64_t i : {0, 1, 64, 127}) {
      const double angle = 3.5 * std::exp(-std::log(10000.0) * static_cast<double>(i) /
                                          static_cast<double>(divisor));
      CHECK(x[1][i].item<double>() == doctest::Approx(std::cos(angle)).epsilon(1e-12));
      CHECK(x[1][128 + i].item<double>() == doctest::Approx(std::sin(angle)).epsilon(1e-12));
    }
    CHECK(x[0].sum().item<double>() == 128);
  }
  CHECK(sinusoid(at::empty({0}, at::kFloat), 128).sizes() == at::IntArrayRef({0, 256}));
}

TEST_CASE("an embedder is linear, SiLU, linear, in the dtype of its weights") {
  Model model;
  const Embedder embedder =
      declare_embedder(DeclareParams(model, Part::kTransformer, "t."), "emb", 6, 4);
  CHECK(model.params[0].name == "t.emb.linear_1.weight");
  CHECK(model.params[3].name == "t.emb.linear_2.bias");
  CHECK(!model.params[3].decay);
  const SimpleParams params = SimpleParams::random(model, 1, at::kDouble);
  at::manual_seed(1);
  const at::Tensor x = at::randn({3, 6}, at::kDouble);
  const at::Tensor inner = at::linear(x, params.get(0), params.get(1));
  CHECK(at::allclose(apply(embedder, params, x),
                     at::linear(inner * at::sigmoid(inner), params.get(2), params.get(3))));
  const SimpleParams half = SimpleParams::random(model, 1, at::kBFloat16);
  CHECK((apply(embedder, half, x).scalar_type() == at::kBFloat16));
  std::vector<ParamId> ids;
  append_params(ids, embedder);
  CHECK(ids == std::vector<ParamId>{0, 1, 2, 3});
}
