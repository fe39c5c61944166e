#include "lib/model/caption_encoder.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/model/eager.h"
#include "tests/model/tiny_diffusion.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

at::Tensor encode(const Model& model, const ParamView& params, std::vector<int64_t> tokens,
                  std::vector<int64_t> borders) {
  Batch batch;
  batch.tokens = at::tensor(tokens, at::TensorOptions().dtype(at::kLong));
  batch.cu_seqlens = std::move(borders);
  return eager_forward(model, params, batch)[find_slot(model, "text_encoder.captions")];
}

Model only_encoder() {
  Model model;
  add_caption_encoder(model, tiny_texted());
  return model;
}

}  // namespace

TEST_CASE("a text encoder sees in both directions, and in its own caption only") {
  const Model model = only_encoder();
  const SimpleParams params = lively_params(model, 1);
  const at::Tensor base = encode(model, params, {1, 2, 3, 4, 5}, {0, 3, 5});
  const at::Tensor late = encode(model, params, {1, 2, 9, 4, 5}, {0, 3, 5});
  CHECK(relative(late[0][0], base[0][0]) > 1e-3);
  CHECK(at::equal(late[1], base[1]));
  const at::Tensor turned = encode(model, params, {2, 1, 3, 4, 5}, {0, 3, 5});
  CHECK(relative(turned[0][2], base[0][2]) > 1e-3);
  CHECK(base.sizes() == at::IntArrayRef({2, 3, 12}));
  CHECK(base[1][2].abs().max().item<double>() == 0);
}

TEST_CASE("fp16: a text encoder's attention runs in fp32, near what fp32 gives") {
  const Model model = only_encoder();
  const std::vector<int64_t> tokens{1, 2, 3, 4, 5}, borders{0, 3, 5};
  const at::Tensor half = encode(model, lively_params(model, 1, at::kHalf), tokens, borders);
  CHECK((half.scalar_type() == at::kHalf));
  CHECK(relative(half, encode(model, lively_params(model, 1, at::kFloat), tokens, borders)) < 0.01);
}

TEST_CASE("an empty caption is the learned row; no caption at all is fine") {
  const Model model = only_encoder();
  const SimpleParams params = lively_params(model, 1);
  const at::Tensor out = encode(model, params, {1, 2}, {0, 2, 2});
  const at::Tensor null = params.get(find_param(model, "text_encoder.null_caption"));
  CHECK(at::equal(out[1][0], null[0]));
  CHECK(encode(model, params, {}, {0}).sizes() == at::IntArrayRef({0, 1, 12}));
}

TEST_CASE("all of the encoder is one part, and all of it is read") {
  const Model model = only_encoder();
  for (const ParamSpec& spec : model.params) {
    CHECK((spec.part == Part::kTextEncoder));
    CHECK(spec.name.starts_with("text_encoder."));
  }
  const auto used = params_in_use(model);
  CHECK(std::count(used.begin(), used.end(), false) == 0);
}
