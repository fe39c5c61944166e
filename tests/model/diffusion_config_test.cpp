#include "lib/model/diffusion_config.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/model/tiny_diffusion.h"

using namespace mm;
using namespace mm::model;
using namespace mm::model::test;

namespace {

Json dit_json() {
  return {{"_class_name", "DiTTransformer2DModel"},
          {"norm_type", "ada_norm_zero"},
          {"num_attention_heads", 16},
          {"attention_head_dim", 72},
          {"num_layers", 28},
          {"in_channels", 4},
          {"out_channels", 8},
          {"sample_size", 32},
          {"patch_size", 2},
          {"num_embeds_ada_norm", 1000},
          {"activation_fn", "gelu-approximate"},
          {"attention_bias", true},
          {"norm_elementwise_affine", false},
          {"norm_eps", 1e-5}};
}

void refused(const std::function<void(Json&)>& change, const char* word) {
  Json json = dit_json();
  change(json);
  CHECK_THROWS_WITH_AS(diffusion_config_from_json(json, "config.json"), doctest::Contains(word),
                       DataError);
}

}  // namespace

TEST_CASE("a published DiT's config.json, with diffusers' norm eps and divisor") {
  const DiffusionConfig c = diffusion_config_from_json(dit_json(), "config.json");
  CHECK(c.hidden() == 1152);
  CHECK(c.learned_sigma);
  CHECK(c.out_channels() == 8);
  CHECK(c.mlp_norm_eps == 1e-5);
  CHECK(c.attention_norm_eps == 1e-6);
  CHECK(c.time_divisor == 127);
  CHECK(is_diffusion_config(dit_json()));
  CHECK(!is_diffusion_config({{"model_type", "llava"}}));
  CHECK(!is_diffusion_config({{"_class_name", "AutoencoderKL"}}));
}

TEST_CASE("configurations written and read again are the same") {
  for (DiffusionConfig config : tiny_families()) {
    const Json json = to_json(config);
    CHECK(to_json(diffusion_config_from_json(json, "here")) == json);
    config.time_divisor = 127;
    config.layers = 3;
    config.mask_captions = !config.mask_captions;
    const DiffusionConfig again = diffusion_config_from_json(to_json(config), "here");
    CHECK(again.time_divisor == 127);
    CHECK(again.layers == 3);
    CHECK(again.mask_captions == config.mask_captions);
    CHECK(again.text == config.text);
    CHECK(again.caption_tokens == (config.takes_captions() ? config.caption_tokens : 120));
    CHECK(again.dual_layers == config.dual_layers);
    CHECK(again.null_caption == config.null_caption);
  }
}

TEST_CASE("PixArt's defaults follow the sample size") {
  Json json = {{"_class_name", "PixArtTransformer2DModel"},
               {"norm_type", "ada_norm_single"},
               {"out_channels", 8},
               {"sample_size", 128}};
  DiffusionConfig c = diffusion_config_from_json(json, "config.json");
  CHECK(c.position_scale == 2);
  CHECK(c.size_embedders);
  CHECK(c.mask_captions);
  CHECK(c.caption_width == 4096);
  json["sample_size"] = 32;
  c = diffusion_config_from_json(json, "config.json");
  CHECK(c.position_scale == 1);
  CHECK(!c.size_embedders);
}

TEST_CASE("SD3's form: no mask, one channel count, q/k norms by name") {
  const Json json = {{"_class_name", "SD3Transformer2DModel"},
                     {"num_attention_heads", 24},
                     {"caption_projection_dim", 1536},
                     {"qk_norm", nullptr}};
  const DiffusionConfig c = diffusion_config_from_json(json, "config.json");
  CHECK(c.in_channels == 16);
  CHECK(!c.learned_sigma);
  CHECK(!c.mask_captions);
  CHECK(!c.qk_norm);
  Json other = json;
  other["qk_norm"] = "layer_norm";
  CHECK_THROWS_WITH_AS(diffusion_config_from_json(other, "x"), doctest::Contains("qk_norm"),
                       DataError);
  other = json;
  other["caption_projection_dim"] = 1000;
  CHECK_THROWS_WITH_AS(diffusion_config_from_json(other, "x"),
                       doctest::Contains("caption_projection_dim"), DataError);
}

TEST_CASE("what no diffusion transformer has is refused by key") {
  refused([](Json& j) { j["_class_name"] = "UNet2DConditionModel"; }, "UNet2DConditionModel");
  refused([](Json& j) { j["out_channels"] = 5; }, "out_channels");
  refused([](Json& j) { j["norm_type"] = "layer_norm"; }, "norm_type");
  refused([](Json& j) { j["attention_bias"] = false; }, "biases");
  refused([](Json& j) { j["num_attention_heads"] = 0; }, "num_attention_heads");
  refused(
      [](Json& j) {
        j["attention_head_dim"] = 3;
        j["num_attention_heads"] = 3;
      },
      "multiple of 4");
  refused([](Json& j) { j["patch_size"] = 64; }, "sample_size");
  refused([](Json& j) { j["time_embedding_divisor"] = 100; }, "divisor");
  refused([](Json& j) { j["activation_fn"] = "geglu"; }, "activation_fn");
  CHECK_THROWS_AS(diffusion_config_from_json(Json::array(), "x"), DataError);
  DiffusionConfig config = tiny_sd3();
  config.dual_layers = {2};
  CHECK_THROWS_AS(check_config(config, "x"), DataError);
  config = tiny_texted();
  config.text.heads = 5;
  CHECK_THROWS_AS(check_config(config, "x"), DataError);
  config = tiny_pixart();
  config.head_size = 16;
  CHECK_THROWS_WITH_AS(check_config(config, "x"), doctest::Contains("divide the width by 3"),
                       DataError);
}
