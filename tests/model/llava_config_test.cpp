#include "lib/model/llava_config.h"

#include <doctest/doctest.h>

#include <functional>

#include "lib/base/error.h"
#include "tests/base/temp_dir.h"
#include "tests/model/tiny_varied.h"

using namespace mm::model;
using mm::Json;
using mm::test::message_of;

namespace {

Json published() { return to_json(test::tiny_config()); }

std::string refusal(const Json& json) {
  return message_of<mm::DataError>([&] { llava_config_from_json(json, "config.json"); });
}

}  // namespace

TEST_CASE("a configuration written and read back is the same") {
  LlavaConfig config = test::tiny_config();
  config.text.tied_head = true;
  config.text.rope_theta = 5e5;
  config.text.eos_token = 3;
  config.text.pad_token = 0;
  config.projector_bias = false;
  config.keep_first_row = true;
  config.vision_feature_layer = -1;
  const Json json = to_json(config);
  CHECK(to_json(llava_config_from_json(json, "x")) == json);
}

TEST_CASE(
    "a linear projector is written under our own key and read back, any other kind is refused") {
  LlavaConfig config = test::tiny_config();
  CHECK_FALSE(to_json(config).contains("projector_kind"));
  config.projector = ProjectorKind::kLinear;
  Json json = to_json(config);
  CHECK(json["projector_kind"] == "linear");
  CHECK(llava_config_from_json(json, "x").projector == ProjectorKind::kLinear);
  json["projector_kind"] = "mlp2x_gelu";
  CHECK(llava_config_from_json(json, "x").projector == ProjectorKind::kMlp2xGelu);
  json["projector_kind"] = "mlp3x_gelu";
  CHECK(refusal(json) ==
        "config.json.projector_kind is \"mlp3x_gelu\"; expected \"mlp2x_gelu\" or \"linear\"");
}

TEST_CASE("a flat configuration of LLaVA's own code is refused with what to take instead") {
  const Json flat{{"model_type", "llava"},
                  {"hidden_size", 24},
                  {"mm_vision_tower", "openai/clip-vit-large-patch14-336"},
                  {"mm_projector_type", "mlp2x_gelu"}};
  const std::string message = refusal(flat);
  CAPTURE(message);
  CHECK(message.find("mm_vision_tower \"openai/clip-vit-large-patch14-336\"") != std::string::npos);
  CHECK(message.find("llava-hf") != std::string::npos);
  Json nested = published();
  nested["mm_vision_tower"] = "left over";
  CHECK_NOTHROW(llava_config_from_json(nested, "x"));
}

TEST_CASE("over 1,024 layers are refused by key before any is made") {
  for (const char* part : {"text_config", "vision_config"}) {
    Json json = published();
    json[part]["num_hidden_layers"] = 16777216;
    CHECK(refusal(json) == "config.json." + std::string(part) +
                               ".num_hidden_layers: 16777216 is not an integer from 1 to 1024");
    json[part]["num_hidden_layers"] = 1024;
    CHECK_NOTHROW(llava_config_from_json(json, "x"));
  }
  Json qwen = to_json(test::tiny_qwen_config());
  qwen["vision_config"]["depth"] = 1025;
  CHECK(refusal(qwen).find("vision_config.depth: 1025") != std::string::npos);
}

TEST_CASE("eos_token_id: all of a list are kept, and written as a list") {
  Json json = published();
  json["text_config"]["eos_token_id"] = {7, 9, 11};
  const LlavaConfig config = llava_config_from_json(json, "x");
  CHECK(config.text.eos_token == 7);
  CHECK(config.text.more_eos_tokens == std::vector<int64_t>{9, 11});
  CHECK(to_json(config)["text_config"]["eos_token_id"] == Json{7, 9, 11});
  // What no text can have ends none.
  json["text_config"]["eos_token_id"] = {7, -1, nullptr, 9};
  CHECK(llava_config_from_json(json, "x").text.more_eos_tokens == std::vector<int64_t>{9});
  json["text_config"]["eos_token_id"] = {"</s>", 7};
  CHECK(refusal(json).find("eos_token_id") != std::string::npos);
}

TEST_CASE("every kind of tower and decoder is written and read back the same") {
  LlavaConfig config = test::tiny_config();
  config.vision.kind = VisionKind::kSiglip;
  config.vision.pooling_head = true;
  config.keep_first_row = true;
  for (const TextKind kind :
       {TextKind::kLlama, TextKind::kMistral, TextKind::kQwen2, TextKind::kQwen3}) {
    config.text.kind = kind;
    config.text.qkv_bias = kind == TextKind::kQwen2;
    config.text.qk_norm = kind == TextKind::kQwen3;
    config.text.sliding_window = kind == TextKind::kMistral ? 512 : 0;
    config.text.rope_scaling = {.kind = RopeScaling::Kind::kLlama3, .factor = 8};
    const LlavaConfig back = llava_config_from_json(to_json(config), "x");
    CHECK(to_json(back) == to_json(config));
    CHECK(back.text.qkv_bias == config.text.qkv_bias);
    CHECK(back.text.qk_norm == config.text.qk_norm);
    CHECK(back.text.sliding_window == config.text.sliding_window);
    CHECK(back.text.rope_scaling == config.text.rope_scaling);
    CHECK(back.patches_per_image() == back.vision.grid_patches());
  }
}

TEST_CASE("Mistral: an absent sliding_window means 4096, null none") {
  Json json = published();
  json["text_config"]["model_type"] = "mistral";
  json["text_config"].erase("sliding_window");
  CHECK(llava_config_from_json(json, "x").text.sliding_window == 4096);
  json["text_config"]["sliding_window"] = nullptr;
  CHECK(llava_config_from_json(json, "x").text.sliding_window == 0);
}

TEST_CASE("rope_theta is read in the published spelling and in that of transformers 5") {
  Json json = published();
  json["text_config"]["rope_theta"] = 7e4;
  CHECK(llava_config_from_json(json, "x").text.rope_theta == 7e4);
  json["text_config"].erase("rope_theta");
  json["text_config"]["rope_parameters"] = {{"rope_theta", 8e4}, {"rope_type", "default"}};
  CHECK(llava_config_from_json(json, "x").text.rope_theta == 8e4);
  json["text_config"]["rope_parameters"]["rope_type"] = "yarn";
  CHECK(refusal(json).find("config.json.text_config.rope_parameters: rope type \"yarn\"") == 0);
}

TEST_CASE("what a published file leaves out has Hugging Face's defaults") {
  const Json json = {
      {"model_type", "llava"},
      {"text_config", {{"model_type", "llama"}, {"rms_norm_eps", 1e-5}, {"vocab_size", 32064}}},
      {"vision_config",
       {{"model_type", "clip_vision_model"}, {"hidden_size", 1024}, {"num_attention_heads", 16}}}};
  const LlavaConfig config = llava_config_from_json(json, "x");
  CHECK(config.text.hidden == 4096);
  CHECK(config.text.kv_heads == 32);
  CHECK(config.text.head_size == 128);
  CHECK(config.text.rope_theta == 1e4);
  CHECK(config.vision.intermediate == 3072);
  CHECK(config.image_token_index == 32000);
  CHECK(config.vision_layers_run() == 11);
  CHECK(!config.text.tied_head);
}

TEST_CASE("an unknown model type, activation or strategy is refused by name") {
  const auto with = [](const char* section, const char* key, const Json& value) {
    Json json = published();
    (section == nullptr ? json : json[section])[key] = value;
    return refusal(json);
  };
  CHECK(with(nullptr, "model_type", "blip") ==
        "config.json.model_type is \"blip\"; expected llava, llava_next, llava_onevision or "
        "qwen2_5_vl");
  CHECK(with("text_config", "model_type", "gpt_neox").find("gpt_neox") != std::string::npos);
  CHECK(with("vision_config", "model_type", "dinov2").find("dinov2") != std::string::npos);
  CHECK(with("vision_config", "hidden_act", "gelu").find("quick_gelu") != std::string::npos);
  CHECK(with(nullptr, "vision_feature_select_strategy", "mean").find("\"mean\"") !=
        std::string::npos);
  CHECK(with("text_config", "attention_bias", true).find("attention_bias") != std::string::npos);
  CHECK(refusal(Json::array()).find("expected a JSON object") != std::string::npos);
}

TEST_CASE("sizes of the wrong kind or that do not fit together are refused with key and value") {
  const auto with = [](const char* section, const char* key, const Json& value) {
    Json json = published();
    (section == nullptr ? json : json[section])[key] = value;
    return refusal(json);
  };
  CHECK(with("text_config", "hidden_size", -4).find("text_config.hidden_size: -4") !=
        std::string::npos);
  CHECK(with("text_config", "hidden_size", "big").find("hidden_size: \"big\"") !=
        std::string::npos);
  CHECK(with("text_config", "vocab_size", int64_t{1} << 40).find("vocab_size") !=
        std::string::npos);
  CHECK(with("text_config", "rms_norm_eps", 0).find("not a positive number") != std::string::npos);
  CHECK(with("text_config", "num_key_value_heads", 3).find("4 heads are no multiple of 3") !=
        std::string::npos);
  CHECK(with("text_config", "head_dim", 5).find("head size 5 is odd") != std::string::npos);
  CHECK(with("vision_config", "num_attention_heads", 5).find("no multiple of 5 heads") !=
        std::string::npos);
  CHECK(with("vision_config", "patch_size", 9).find("larger than the picture") !=
        std::string::npos);
  CHECK(with(nullptr, "vision_feature_layer", -5).find("outside a tower of 3 layers") !=
        std::string::npos);
  CHECK(with(nullptr, "image_token_index", 50).find("outside a vocabulary of 50") !=
        std::string::npos);
}

TEST_CASE("C13: picture tokens are floor(side / patch)^2, one more where the class token is kept") {
  const auto tokens = [](int64_t side, int64_t patch, bool keep) {
    LlavaConfig config;
    config.vision.image_size = side;
    config.vision.patch_size = patch;
    config.keep_first_row = keep;
    return config.patches_per_image();
  };
  CHECK(tokens(336, 14, false) == 576);
  CHECK(tokens(336, 14, true) == 577);
  CHECK(tokens(224, 14, false) == 256);
  CHECK(tokens(224, 14, true) == 257);
  CHECK(tokens(224, 32, false) == 49);
  CHECK(tokens(224, 16, false) == 196);
  CHECK(tokens(384, 14, false) == 729);
}

TEST_CASE("each family is written and read back the same, and named by its model_type") {
  for (const LlavaConfig& config :
       {test::tiny_next_config(), test::tiny_onevision_config(), test::tiny_qwen_config()}) {
    const Json json = to_json(config);
    CHECK(json.at("model_type") == family_name(config.family));
    const LlavaConfig back = llava_config_from_json(json, "x");
    CHECK((back.family == config.family));
    CHECK(to_json(back) == json);
    CHECK((back.grid_points == config.grid_points));
    CHECK(back.max_grid_tiles == config.max_grid_tiles);
    CHECK(back.text.rope_sections == config.text.rope_sections);
    CHECK(back.vision.full_layers == config.vision.full_layers);
  }
}

TEST_CASE("Qwen2.5-VL: the decoder's keys at the top or in text_config, both rope spellings") {
  const Json flat = to_json(test::tiny_qwen_config());
  Json nested = flat;
  nested["text_config"] = flat;
  nested["text_config"].erase("vision_config");
  nested["text_config"]["model_type"] = "qwen2_5_vl_text";
  nested["text_config"].erase("rope_scaling");
  nested["text_config"]["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", 10000.0}, {"mrope_section", {1, 1, 2}}};
  for (const char* key : {"hidden_size", "num_hidden_layers", "rope_theta", "rope_scaling"})
    nested.erase(key);
  CHECK(to_json(llava_config_from_json(nested, "x")) == flat);
  Json published = flat;
  published["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {1, 1, 2}}};
  CHECK(to_json(llava_config_from_json(published, "x")) == flat);
}

TEST_CASE("grids, windows and sections that do not fit are refused by name") {
  const auto refuses = [](const LlavaConfig& config, const std::function<void(Json&)>& change,
                          const std::string& words) {
    Json json = to_json(config);
    change(json);
    const std::string message = refusal(json);
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  const LlavaConfig next = test::tiny_next_config(), qwen = test::tiny_qwen_config();
  refuses(
      next,
      [](Json& j) {
        j["image_grid_pinpoints"] = {{8, 12}};
      },
      "8 x 12 is no multiple of the tile, 8 pixels");
  refuses(
      next, [](Json& j) { j["image_grid_pinpoints"] = {{8}}; },
      "image_grid_pinpoints: expected a list of");
  refuses(
      next, [](Json& j) { j["image_grid_pinpoints"] = Json::array(); }, "empty");
  refuses(
      test::tiny_onevision_config(), [](Json& j) { j["vision_aspect_ratio"] = "pad"; },
      "expected anyres_max_");
  refuses(
      next, [](Json& j) { j["vision_feature_select_strategy"] = "full"; },
      "5 features for 4 patches");
  refuses(
      qwen, [](Json& j) { j["vision_config"]["window_size"] = 12; }, "window_size 12");
  refuses(
      qwen,
      [](Json& j) {
        j["rope_scaling"]["mrope_section"] = {1, 1, 1};
      },
      "half of the head size, 8");
  refuses(
      qwen, [](Json& j) { j["vision_config"]["out_hidden_size"] = 32; }, "out_hidden_size 32");
  refuses(
      qwen, [](Json& j) { j["vision_config"]["temporal_patch_size"] = 1; }, "temporal_patch_size");
  refuses(
      next, [](Json& j) { j["model_type"] = "paligemma"; }, "qwen2_5_vl");
}

TEST_CASE("absent grids are those that the published classes mean") {
  Json json = to_json(test::tiny_next_config());
  json.erase("image_grid_pinpoints");
  CHECK((llava_config_from_json(json, "x").grid_points ==
         std::vector<GridPoint>{{8, 16}, {16, 8}, {16, 16}, {24, 8}, {8, 24}}));
  json = to_json(test::tiny_onevision_config());
  json.erase("image_grid_pinpoints");
  CHECK(llava_config_from_json(json, "x").grid_points.size() == 36);
}
