#include "lib/model/llava_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "lib/base/error.h"

namespace mm::model {
namespace {

constexpr const char* kClipType = "clip_vision_model";
constexpr const char* kSiglipType = "siglip_vision_model";

struct TextType {
  std::string_view name;
  const char* architecture;
  TextKind kind;
};
constexpr std::array<TextType, 4> kTextTypes = {
    {{"llama", "LlamaForCausalLM", TextKind::kLlama},
     {"mistral", "MistralForCausalLM", TextKind::kMistral},
     {"qwen2", "Qwen2ForCausalLM", TextKind::kQwen2},
     {"qwen3", "Qwen3ForCausalLM", TextKind::kQwen3}}};

// Above any published model, below what makes products of two sizes overflow.
constexpr int64_t kMaxSize = int64_t{1} << 24;

/// One object of the file with its place for messages.
struct Section {
  const Json& json;
  std::string where;

  bool has(const char* key) const { return json.contains(key) && !json.at(key).is_null(); }

  int64_t integer(const char* key, int64_t fallback, int64_t low = 1) const {
    if (!has(key)) return fallback;
    const Json& value = json.at(key);
    if (!value.is_number_integer() || value < low || value > kMaxSize) {
      throw DataError("{}.{}: {} is not an integer from {} to {}", where, key, value.dump(), low,
                      kMaxSize);
    }
    return value.get<int64_t>();
  }

  double positive(const char* key, double fallback) const {
    if (!has(key)) return fallback;
    const Json& value = json.at(key);
    if (!value.is_number() || value.get<double>() <= 0) {
      throw DataError("{}.{}: {} is not a positive number", where, key, value.dump());
    }
    return value.get<double>();
  }

  bool boolean(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!json.at(key).is_boolean()) {
      throw DataError("{}.{}: {} is neither true nor false", where, key, json.at(key).dump());
    }
    return json.at(key).get<bool>();
  }

  std::string word(const char* key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!json.at(key).is_string())
      throw DataError("{}.{}: {} is not a string", where, key, json.at(key).dump());
    return json.at(key).get<std::string>();
  }

  void require(const char* key, const std::string& fallback, const std::string& expected) const {
    const std::string value = word(key, fallback);
    if (value != expected)
      throw DataError("{}.{} is \"{}\"; only \"{}\" is supported", where, key, value, expected);
  }

  Section child(const char* key) const {
    static const Json kEmpty = Json::object();
    if (!has(key)) return {kEmpty, where + "." + key};
    if (!json.at(key).is_object()) throw DataError("{}.{} is not an object", where, key);
    return {json.at(key), where + "." + key};
  }
};

VisionConfig read_vision(const Section& s) {
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
  v.layers = s.integer("num_hidden_layers", v.layers);
  v.heads = s.integer("num_attention_heads", v.heads);
  v.channels = s.integer("num_channels", v.channels);
  v.image_size = s.integer("image_size", v.image_size);
  v.patch_size = s.integer("patch_size", v.patch_size);
  v.norm_eps = s.positive("layer_norm_eps", v.norm_eps);
  return v;
}

/// `eos_token_id` may be a list; the first one ends generation.
int64_t token_id(const Section& s, const char* key, int64_t fallback) {
  if (s.json.contains(key) && s.json.at(key).is_null()) return -1;
  if (s.has(key) && s.json.at(key).is_array() && !s.json.at(key).empty()) {
    const Json first = {{key, s.json.at(key).front()}};
    return Section{first, s.where}.integer(key, fallback, 0);
  }
  return s.integer(key, fallback, -1);
}

RopeScaling read_rope_scaling(const Section& rope) {
  const std::string kind = rope.word(rope.has("rope_type") ? "rope_type" : "type", "default");
  RopeScaling scaling;
  if (kind == "default") return scaling;
  if (kind != "linear" && kind != "llama3") {
    throw DataError("{}: rope type \"{}\" is not supported; expected default, linear or llama3",
                    rope.where, kind);
  }
  scaling.kind = kind == "linear" ? RopeScaling::Kind::kLinear : RopeScaling::Kind::kLlama3;
  scaling.factor = rope.positive("factor", 1);
  scaling.low_freq_factor = rope.positive("low_freq_factor", 1);
  scaling.high_freq_factor = rope.positive("high_freq_factor", 4);
  scaling.original_positions = rope.positive("original_max_position_embeddings", 8192);
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    throw DataError("{}: high_freq_factor {} is not above low_freq_factor {}", rope.where,
                    scaling.high_freq_factor, scaling.low_freq_factor);
  }
  return scaling;
}

void read_rope(const Section& s, TextConfig& t) {
  t.rope_theta = s.positive("rope_theta", t.rope_theta);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!s.has(key)) continue;
    const Section rope = s.child(key);
    t.rope_scaling = read_rope_scaling(rope);
    t.rope_theta = rope.positive("rope_theta", t.rope_theta);
    return;
  }
}

/// What the kinds of decoder differ in besides sizes.
void read_kind(const Section& s, TextConfig& t) {
  const std::string type = s.word("model_type", "llama");
  const auto* row = std::ranges::find(kTextTypes, type, &TextType::name);
  if (row == kTextTypes.end()) {
    throw DataError("{}.model_type is \"{}\"; expected llama, mistral, qwen2 or qwen3", s.where,
                    type);
  }
  t.kind = row->kind;
  if (s.boolean("attention_bias", false) || s.boolean("mlp_bias", false))
    throw DataError("{}: attention_bias and mlp_bias are not supported; expected false", s.where);
  if (s.boolean("use_sliding_window", false))
    throw DataError("{}.use_sliding_window: windows in some layers only are not supported",
                    s.where);
  t.qkv_bias = t.kind == TextKind::kQwen2;
  t.qk_norm = t.kind == TextKind::kQwen3;
  // An absent key means what the published class means by it, null means none.
  if (t.kind == TextKind::kMistral)
    t.sliding_window = s.json.contains("sliding_window") ? s.integer("sliding_window", 0) : 4096;
  if (t.kind == TextKind::kQwen2 || t.kind == TextKind::kQwen3) t.bos_token = t.eos_token = -1;
}

TextConfig read_text(const Section& s) {
  s.require("hidden_act", "silu", "silu");
  TextConfig t;
  read_kind(s, t);
  t.vocab = s.integer("vocab_size", t.vocab);
  t.hidden = s.integer("hidden_size", t.hidden);
  t.intermediate = s.integer("intermediate_size", t.intermediate);
  t.layers = s.integer("num_hidden_layers", t.layers);
  t.heads = s.integer("num_attention_heads", t.heads);
  t.kv_heads = s.integer("num_key_value_heads", t.heads);
  t.head_size = s.integer("head_dim", t.kind == TextKind::kQwen3 ? 128 : t.hidden / t.heads);
  t.max_positions = s.integer("max_position_embeddings", t.max_positions);
  t.norm_eps = s.positive("rms_norm_eps", t.norm_eps);
  read_rope(s, t);
  t.bos_token = token_id(s, "bos_token_id", t.bos_token);
  t.eos_token = token_id(s, "eos_token_id", t.eos_token);
  t.pad_token = token_id(s, "pad_token_id", t.pad_token);
  return t;
}

Json id_or_null(int64_t id) { return id < 0 ? Json(nullptr) : Json(id); }

Json vision_json(const VisionConfig& v) {
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

Json rope_json(const RopeScaling& r) {
  if (r.kind == RopeScaling::Kind::kLinear) return {{"rope_type", "linear"}, {"factor", r.factor}};
  return {{"rope_type", "llama3"},
          {"factor", r.factor},
          {"low_freq_factor", r.low_freq_factor},
          {"high_freq_factor", r.high_freq_factor},
          {"original_max_position_embeddings", static_cast<int64_t>(r.original_positions)}};
}

Json text_json(const TextConfig& t) {
  const TextType& type = *std::ranges::find(kTextTypes, t.kind, &TextType::kind);
  Json json = {{"model_type", type.name},
               {"architectures", {type.architecture}},
               {"bos_token_id", id_or_null(t.bos_token)},
               {"eos_token_id", id_or_null(t.eos_token)},
               {"pad_token_id", id_or_null(t.pad_token)},
               {"head_dim", t.head_size},
               {"hidden_act", "silu"},
               {"hidden_size", t.hidden},
               {"intermediate_size", t.intermediate},
               {"max_position_embeddings", t.max_positions},
               {"num_attention_heads", t.heads},
               {"num_hidden_layers", t.layers},
               {"num_key_value_heads", t.kv_heads},
               {"rms_norm_eps", t.norm_eps},
               {"rope_theta", t.rope_theta},
               {"tie_word_embeddings", t.tied_head},
               {"vocab_size", t.vocab}};
  if (t.kind == TextKind::kLlama) json["attention_bias"] = json["mlp_bias"] = false;
  if (t.kind == TextKind::kMistral)
    json["sliding_window"] = t.sliding_window > 0 ? Json(t.sliding_window) : Json(nullptr);
  if (t.rope_scaling.kind != RopeScaling::Kind::kNone)
    json["rope_scaling"] = rope_json(t.rope_scaling);
  return json;
}

}  // namespace

int64_t LlavaConfig::vision_layers_run() const {
  return vision_feature_layer < 0 ? vision.layers + 1 + vision_feature_layer : vision_feature_layer;
}

void check_config(const LlavaConfig& config, const std::string& origin) {
  const VisionConfig& v = config.vision;
  const TextConfig& t = config.text;
  const auto must = [&](bool holds, const std::string& what) {
    if (!holds) throw DataError("{}: {}", origin, what);
  };
  must(v.hidden % v.heads == 0,
       fmt::format("vision hidden size {} is no multiple of {} heads", v.hidden, v.heads));
  must(v.patch_size <= v.image_size,
       fmt::format("patch size {} is larger than the picture, {}", v.patch_size, v.image_size));
  must(t.heads % t.kv_heads == 0,
       fmt::format("{} heads are no multiple of {} key/value heads", t.heads, t.kv_heads));
  must(t.head_size % 2 == 0,
       fmt::format("head size {} is odd; rotary positions need pairs", t.head_size));
  must(config.vision_layers_run() >= 0 && config.vision_layers_run() <= v.layers,
       fmt::format("vision_feature_layer {} is outside a tower of {} layers",
                   config.vision_feature_layer, v.layers));
  must(config.image_token_index >= 0 && config.image_token_index < t.vocab,
       fmt::format("image_token_index {} is outside a vocabulary of {}", config.image_token_index,
                   t.vocab));
}

LlavaConfig llava_config_from_json(const Json& json, const std::string& origin) {
  if (!json.is_object()) throw DataError("{}: expected a JSON object", origin);
  const Section s{json, origin};
  s.require("model_type", "(missing)", "llava");
  s.require("projector_hidden_act", "gelu", "gelu");
  LlavaConfig config;
  config.vision = read_vision(s.child("vision_config"));
  config.text = read_text(s.child("text_config"));
  // Either level may say so; transformers 5 writes both, published files one.
  config.text.tied_head = s.boolean("tie_word_embeddings",
                                    s.child("text_config").boolean("tie_word_embeddings", false));
  const char* index_key = s.has("image_token_index") ? "image_token_index" : "image_token_id";
  config.image_token_index = s.integer(index_key, config.image_token_index, 0);
  config.vision_feature_layer =
      s.integer("vision_feature_layer", -2, std::numeric_limits<int32_t>::min());
  const std::string select = s.word("vision_feature_select_strategy", "default");
  if (select != "default" && select != "full") {
    throw DataError("{}.vision_feature_select_strategy is \"{}\"; expected \"default\" or \"full\"",
                    origin, select);
  }
  config.keep_first_row = select == "full";
  config.projector_bias = s.boolean("multimodal_projector_bias", true);
  check_config(config, origin);
  return config;
}

LlavaConfig read_llava_config(const std::filesystem::path& config_json) {
  return llava_config_from_json(read_json_file(config_json), config_json.string());
}

Json to_json(const LlavaConfig& config) {
  return {{"architectures", {"LlavaForConditionalGeneration"}},
          {"model_type", "llava"},
          {"image_seq_length", config.patches_per_image()},
          {"image_token_index", config.image_token_index},
          {"multimodal_projector_bias", config.projector_bias},
          {"projector_hidden_act", "gelu"},
          {"text_config", text_json(config.text)},
          {"tie_word_embeddings", config.text.tied_head},
          {"torch_dtype", "float32"},
          {"vision_config", vision_json(config.vision)},
          {"vision_feature_layer", config.vision_feature_layer},
          {"vision_feature_select_strategy", config.keep_first_row ? "full" : "default"}};
}

}  // namespace mm::model
