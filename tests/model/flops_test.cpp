#include "lib/model/flops.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/model/tiny_llava.h"

using namespace mm::model;

namespace {

/// LLaVA-1.5 7B with a 336 tower.
LlavaConfig llava_7b() {
  LlavaConfig config;
  config.vision = {.hidden = 1024,
                   .intermediate = 4096,
                   .layers = 24,
                   .heads = 16,
                   .image_size = 336,
                   .patch_size = 14};
  config.text.vocab = 32064;
  return config;
}

double forward(const Model& model, const Sizes& sizes) {
  return model_flops(model, sizes, std::vector<bool>(model.params.size(), false)).forward;
}

std::vector<bool> trained(const Model& model, const std::set<Part>& parts) {
  std::vector<bool> flags;
  for (const ParamSpec& spec : model.params) flags.push_back(parts.contains(spec.part));
  return flags;
}

}  // namespace

TEST_CASE(
    "LLaVA 1.5 7B has the published number of parameters in the published number of tensors") {
  const Model model = build_llava(llava_7b());
  int64_t elements = 0, vision = 0;
  for (const ParamSpec& spec : model.params) {
    int64_t count = 1;
    for (int64_t size : spec.shape) count *= size;
    elements += count;
    if (spec.part == Part::kVision) vision += count;
  }
  CHECK(elements == 7'063'427'072);
  CHECK(vision == 303'507'456);
  CHECK(model.params.size() == 686);
}

TEST_CASE(
    "forward FLOPs of CLIP-L/336 are the published ones, for 24 layers and for the 23 that LLaVA "
    "needs") {
  LlavaConfig config = llava_7b();
  const double projector = 2.0 * 576 * (1024.0 * 4096 + 4096.0 * 4096);
  const Sizes one{.images = 1, .patches = 576};
  CHECK((forward(build_llava(config), one) - projector) / 1e9 ==
        doctest::Approx(366.03).epsilon(1e-4));
  config.vision_feature_layer = -1;
  CHECK((forward(build_llava(config), one) - projector) / 1e9 ==
        doctest::Approx(381.92).epsilon(1e-4));
}

TEST_CASE("forward FLOPs of Llama-7B are the published ones, products and causal attention") {
  const Model model = build_llava(llava_7b());
  const auto check = [&](int64_t s, double products, double attention) {
    Sizes sizes{.tokens = s, .samples = 1, .targets = s};
    CHECK(forward(model, sizes) / 1e9 == doctest::Approx(products).epsilon(1e-5));
    sizes = {};
    // The published figure halves s^2; our own pairs are s (s + 1) / 2.
    sizes.attention_pairs = static_cast<double>(s) * static_cast<double>(s) / 2;
    CHECK(forward(model, sizes) / 1e9 == doctest::Approx(attention).epsilon(1e-4));
  };
  check(640, 8457.39, 107.37);
  check(2048, 27063.66, 1099.51);
}

TEST_CASE("backward FLOPs: twice the forward when all is trained, nothing for frozen prefixes") {
  const Model model = build_llava(test::tiny_config());
  const Sizes sizes{.tokens = 100,
                    .samples = 4,
                    .images = 3,
                    .patches = 4,
                    .targets = 20,
                    .attention_pairs = 1300};
  const auto backward = [&](const std::set<Part>& parts) {
    return model_flops(model, sizes, trained(model, parts)).backward;
  };
  const double all = backward({Part::kVision, Part::kProjector, Part::kLanguage}),
               whole = forward(model, sizes);
  // The patch embedding has no input that needs a gradient.
  const double patches = 2.0 * 3 * 4 * 16 * 48;
  CHECK(all == doctest::Approx(2 * whole - patches));
  const double vision = forward(model, {.images = 3, .patches = 4});
  CHECK(backward({Part::kLanguage}) == doctest::Approx(2 * (whole - vision)));
  CHECK(backward({}) == 0);
  // Only the projector: its weights; the frozen decoder passes gradients once through products and
  // 2x through attention.
  const double attention = forward(model, {.attention_pairs = 1300}),
               projector = 2.0 * 3 * 4 * (16 * 24 + 24 * 24);
  CHECK(backward({Part::kProjector}) ==
        doctest::Approx(projector + (whole - vision - attention) + 2 * attention));
}

TEST_CASE("add_sizes adds what adds up") {
  const Sizes a{
      .tokens = 1, .samples = 2, .images = 3, .patches = 4, .targets = 5, .attention_pairs = 6};
  const Sizes sum = add_sizes(a, a);
  CHECK(sum.tokens == 2);
  CHECK(sum.samples == 4);
  CHECK(sum.images == 6);
  CHECK(sum.patches == 4);
  CHECK(sum.targets == 10);
  CHECK(sum.attention_pairs == 12);
  CHECK(model_flops(build_llava(test::tiny_config()), {},
                    std::vector<bool>(build_llava(test::tiny_config()).params.size()))
            .total() == 0);
}
