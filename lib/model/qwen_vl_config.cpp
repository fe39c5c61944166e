#include "lib/model/qwen_vl_config.h"

#include <numeric>

#include "lib/base/error.h"
#include "lib/model/text_config.h"

namespace mm::model {
namespace {

constexpr int64_t kFrames = 2;

VisionConfig read_tower(const Section& s) {
  s.require("hidden_act", "silu", "silu");
  VisionConfig v{.kind = VisionKind::kQwen25, .norm_eps = 1e-6};
  v.image_size = 0;
  v.hidden = s.integer("hidden_size", 1280);
  v.intermediate = s.integer("intermediate_size", 3420);
  v.layers = s.layers("depth", 32);
  v.heads = s.integer("num_heads", 16);
  v.channels = s.integer(s.has("in_channels") ? "in_channels" : "in_chans", 3);
  v.patch_size = s.integer("patch_size", 14);
  v.merge = s.integer("spatial_merge_size", 2);
  v.window = s.integer("window_size", 112);
  v.full_layers = s.integers("fullatt_block_indexes", {7, 15, 23, 31}, 0);
  v.output = s.integer("out_hidden_size", 3584);
  if (const int64_t frames = s.integer("temporal_patch_size", kFrames); frames != kFrames) {
    throw DataError("{}.temporal_patch_size is {}; only {} is supported", s.where, frames, kFrames);
  }
  return v;
}

Json tower_json(const VisionConfig& v) {
  return {{"depth", v.layers},
          {"fullatt_block_indexes", v.full_layers},
          {"hidden_act", "silu"},
          {"hidden_size", v.hidden},
          {"in_channels", v.channels},
          {"intermediate_size", v.intermediate},
          {"model_type", "qwen2_5_vl"},
          {"num_heads", v.heads},
          {"out_hidden_size", v.output},
          {"patch_size", v.patch_size},
          {"spatial_merge_size", v.merge},
          {"temporal_patch_size", kFrames},
          {"window_size", v.window}};
}

}  // namespace

void read_qwen_vl_config(const Section& s, LlavaConfig& config) {
  config.vision = read_tower(s.child("vision_config"));
  const std::string type = "qwen2_5_vl_text";
  const Section text = s.has("text_config") ? s.child("text_config") : s;
  if (s.has("text_config")) {
    config.text = read_text_config(text, type);
  } else {
    Json flat = s.json;
    flat["model_type"] = type;
    config.text = read_text_config({flat, s.where}, type);
  }
  const bool inner = text.boolean("tie_word_embeddings", false);
  config.text.tied_head = s.boolean("tie_word_embeddings", inner);
  config.may_tie_head = inner && !config.text.tied_head;
  if (config.text.rope_sections.empty()) config.text.rope_sections = {16, 24, 24};
  config.image_token_index = s.integer("image_token_id", 151655, 0);
  config.video_token = s.integer("video_token_id", 151656, -1);
  config.vision_start_token = s.integer("vision_start_token_id", 151652, -1);
  config.vision_end_token = s.integer("vision_end_token_id", 151653, -1);
  config.vision_feature_layer = -1;
  config.keep_first_row = true;
}

Json qwen_vl_json(const LlavaConfig& config) {
  Json json = text_config_json(config.text);
  json.erase("head_dim");
  json["image_token_id"] = config.image_token_index;
  json["video_token_id"] = config.video_token;
  json["vision_start_token_id"] = config.vision_start_token;
  json["vision_end_token_id"] = config.vision_end_token;
  json["use_sliding_window"] = false;
  json["vision_config"] = tower_json(config.vision);
  return json;
}

void check_qwen_vl_config(const LlavaConfig& config, const std::string& origin) {
  const VisionConfig& v = config.vision;
  const TextConfig& t = config.text;
  const auto must = [&](bool holds, const std::string& what) {
    if (!holds) throw DataError("{}: {}", origin, what);
  };
  must(v.hidden / v.heads % 4 == 0,
       fmt::format("vision head size {} is no multiple of 4; rows and columns both need pairs",
                   v.hidden / v.heads));
  must(v.window >= v.patch_size * v.merge && v.window % (v.patch_size * v.merge) == 0,
       fmt::format("window_size {} is no multiple of {} patches of {} pixels", v.window, v.merge,
                   v.patch_size));
  must(v.output == t.hidden,
       fmt::format("out_hidden_size {} is not the decoder's hidden size, {}", v.output, t.hidden));
  must(t.rope_sections.size() == 3 &&
           std::accumulate(t.rope_sections.begin(), t.rope_sections.end(), int64_t{0}) ==
               t.head_size / 2,
       fmt::format("mrope_section: expected three numbers whose sum is half of the head size, {}",
                   t.head_size));
}

}  // namespace mm::model
