#include "lib/ckpt/hf_names.h"

#include <doctest/doctest.h>

#include "tests/model/tiny_varied.h"

using namespace mm::model;
using mm::ckpt::published_llava_name;

namespace {

std::string renamed(const std::string& name) {
  return published_llava_name(name).value_or("(dropped)");
}

}  // namespace

TEST_CASE("published names stay as they are") {
  for (const ParamSpec& spec : build_llava(test::tiny_config()).params)
    CHECK(renamed(spec.name) == spec.name);
}

TEST_CASE("names as in memory, and as transformers 5 writes them, become the published ones") {
  CHECK(renamed("model.vision_tower.vision_model.pre_layrnorm.bias") ==
        "vision_tower.vision_model.pre_layrnorm.bias");
  CHECK(renamed("model.vision_tower.pre_layrnorm.bias") ==
        "vision_tower.vision_model.pre_layrnorm.bias");
  CHECK(renamed("vision_tower.embeddings.class_embedding") ==
        "vision_tower.vision_model.embeddings.class_embedding");
  CHECK(renamed("model.multi_modal_projector.linear_1.weight") ==
        "multi_modal_projector.linear_1.weight");
  CHECK(renamed("model.language_model.layers.3.mlp.up_proj.weight") ==
        "language_model.model.layers.3.mlp.up_proj.weight");
  CHECK(renamed("model.language_model.norm.weight") == "language_model.model.norm.weight");
  CHECK(renamed("lm_head.weight") == "language_model.lm_head.weight");
}

TEST_CASE("names of the original repository become the published ones") {
  CHECK(renamed("model.vision_tower.vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias") ==
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias");
  CHECK(renamed("model.mm_projector.0.weight") == "multi_modal_projector.linear_1.weight");
  CHECK(renamed("model.mm_projector.2.bias") == "multi_modal_projector.linear_2.bias");
  CHECK(renamed("model.mm_projector.weight") == "multi_modal_projector.linear.weight");
  CHECK(renamed("mm_projector.bias") == "multi_modal_projector.linear.bias");
  CHECK(renamed("model.multi_modal_projector.linear.weight") ==
        "multi_modal_projector.linear.weight");
  CHECK(renamed("model.embed_tokens.weight") == "language_model.model.embed_tokens.weight");
  CHECK(renamed("model.layers.0.input_layernorm.weight") ==
        "language_model.model.layers.0.input_layernorm.weight");
}

TEST_CASE("tables that can be computed are dropped, what is unknown is left alone") {
  CHECK(renamed("model.layers.0.self_attn.rotary_emb.inv_freq") == "(dropped)");
  CHECK(renamed("vision_tower.vision_model.embeddings.position_ids") == "(dropped)");
  CHECK(renamed("image_newline") == "image_newline");
}

TEST_CASE("the newline of LLaVA-NeXT has one name, with and without model.") {
  CHECK(renamed("image_newline") == "image_newline");
  CHECK(renamed("model.image_newline") == "image_newline");
}

TEST_CASE("Qwen2.5-VL's names in memory become the published ones") {
  const auto qwen = [](const std::string& name) {
    return mm::ckpt::published_name("qwen2_5_vl", name).value_or("(dropped)");
  };
  CHECK(qwen("model.visual.blocks.3.attn.qkv.bias") == "visual.blocks.3.attn.qkv.bias");
  CHECK(qwen("visual.merger.ln_q.weight") == "visual.merger.ln_q.weight");
  CHECK(qwen("model.language_model.layers.0.mlp.up_proj.weight") ==
        "model.layers.0.mlp.up_proj.weight");
  CHECK(qwen("model.layers.0.mlp.up_proj.weight") == "model.layers.0.mlp.up_proj.weight");
  CHECK(qwen("model.language_model.embed_tokens.weight") == "model.embed_tokens.weight");
  CHECK(qwen("lm_head.weight") == "lm_head.weight");
  CHECK(qwen("visual.rotary_pos_emb.inv_freq") == "(dropped)");
  for (const ParamSpec& spec : build_llava(test::tiny_qwen_config()).params)
    CHECK(qwen(spec.name) == spec.name);
}

TEST_CASE("names of other models are left alone") {
  CHECK(mm::ckpt::published_name("bert", "model.layers.0.weight") == "model.layers.0.weight");
  CHECK(mm::ckpt::published_name("llava_next", "lm_head.weight") ==
        "language_model.lm_head.weight");
}
