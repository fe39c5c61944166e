#include "lib/model/vision_config.h"

#include "lib/base/error.h"

namespace mm::model {
namespace {

constexpr const char* kClipType = "clip_vision_model";
constexpr const char* kSiglipType = "siglip_vision_model";

}  // namespace

VisionConfig read_vision_config(const Section& s) {
  VisionConfig v;
  if (s.word("model_type", kClipType) == kSiglipType) {
    s.require("hidden_act", "gelu_pytorch_tanh", "gelu_pytorch_tanh");
    v = {.kind = VisionKind::kSiglip, .patch_size = 16, .norm_eps = 1e-6};
    v.pooling_head = s.boolean("vision_use_head", true);
  } else {
    s.require("model_type", kClipType, kClipType);
    s.require("hidden_act", "quick_gelu", "quick_gelu");
  }
  v.hidden = s.integer("hidden_size", v.hidden);
  v.intermediate = s.integer("intermediate_size", v.intermediate);
  v.layers = s.layers("num_hidden_layers", v.layers);
  v.heads = s.integer("num_attention_heads", v.heads);
  v.channels = s.integer("num_channels", v.channels);
  v.image_size = s.integer("image_size", v.image_size);
  v.patch_size = s.integer("patch_size", v.patch_size);
  v.norm_eps = s.positive("layer_norm_eps", v.norm_eps);
  return v;
}

Json vision_config_json(const VisionConfig& v) {
  const bool clip = v.kind == VisionKind::kClip;
  Json json = {{"model_type", clip ? kClipType : kSiglipType},
               {"hidden_act", clip ? "quick_gelu" : "gelu_pytorch_tanh"},
               {"hidden_size", v.hidden},
               {"image_size", v.image_size},
               {"intermediate_size", v.intermediate},
               {"layer_norm_eps", v.norm_eps},
               {"num_attention_heads", v.heads},
               {"num_channels", v.channels},
               {"num_hidden_layers", v.layers},
               {"patch_size", v.patch_size}};
  if (clip) {
    json["projection_dim"] = v.hidden;
  } else {
    json["vision_use_head"] = v.pooling_head;
  }
  return json;
}

}  // namespace mm::model
