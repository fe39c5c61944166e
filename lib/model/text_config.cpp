#include "lib/model/text_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/base/error.h"

namespace mm::model {
namespace {

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
// The decoder of Qwen2.5-VL is Qwen2's, with positions in three directions.
constexpr std::string_view kQwenVlText = "qwen2_5_vl_text";

/// Of a list the first.
int64_t token_id(const Section& s, const char* key, int64_t fallback) {
  if (s.json.contains(key) && s.json.at(key).is_null()) return -1;
  if (s.has(key) && s.json.at(key).is_array() && !s.json.at(key).empty()) {
    const Json first = {{key, s.json.at(key).front()}};
    return Section{first, s.where}.integer(key, fallback, 0);
  }
  return s.integer(key, fallback, -1);
}

/// `eos_token_id` may be a list: each of it ends a text.
void read_eos(const Section& s, TextConfig& t) {
  t.eos_token = token_id(s, "eos_token_id", t.eos_token);
  if (!s.has("eos_token_id") || !s.json.at("eos_token_id").is_array()) return;
  for (const Json& id : s.json.at("eos_token_id")) {
    if (id.is_number_integer() && id >= 0 && id <= kMaxConfigSize && id != t.eos_token)
      t.more_eos_tokens.push_back(id.get<int64_t>());
  }
}

RopeScaling read_rope_scaling(const Section& rope) {
  const std::string kind = rope.word(rope.has("rope_type") ? "rope_type" : "type", "default");
  RopeScaling scaling;
  if (kind == "default" || kind == "mrope") return scaling;
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
    t.rope_sections = rope.integers("mrope_section", {}, 0);
    t.rope_theta = rope.positive("rope_theta", t.rope_theta);
    return;
  }
}

/// What the kinds of decoder differ in besides sizes.
void read_kind(const Section& s, const std::string& type, TextConfig& t) {
  const auto kind = text_kind_from_name(type == kQwenVlText ? "qwen2" : type);
  if (!kind) {
    throw DataError("{}.model_type is \"{}\"; expected llama, mistral, qwen2 or qwen3", s.where,
                    type);
  }
  t.become(*kind);
  if (s.boolean("attention_bias", false) || s.boolean("mlp_bias", false))
    throw DataError("{}: attention_bias and mlp_bias are not supported; expected false", s.where);
  if (s.boolean("use_sliding_window", false))
    throw DataError("{}.use_sliding_window: windows in some layers only are not supported",
                    s.where);
  // An absent key means what the published class means by it, null means none.
  if (t.kind == TextKind::kMistral)
    t.sliding_window = s.json.contains("sliding_window") ? s.integer("sliding_window", 0) : 4096;
  if (t.kind == TextKind::kQwen2 || t.kind == TextKind::kQwen3) t.bos_token = t.eos_token = -1;
}

Json id_or_null(int64_t id) { return id < 0 ? Json(nullptr) : Json(id); }

Json eos_json(const TextConfig& t) {
  if (t.more_eos_tokens.empty()) return id_or_null(t.eos_token);
  Json ids = Json::array({t.eos_token});
  for (const int64_t id : t.more_eos_tokens) ids.push_back(id);
  return ids;
}

Json rope_json(const TextConfig& t) {
  const RopeScaling& r = t.rope_scaling;
  if (!t.rope_sections.empty())
    return {{"rope_type", "default"}, {"type", "mrope"}, {"mrope_section", t.rope_sections}};
  if (r.kind == RopeScaling::Kind::kLinear) return {{"rope_type", "linear"}, {"factor", r.factor}};
  return {{"rope_type", "llama3"},
          {"factor", r.factor},
          {"low_freq_factor", r.low_freq_factor},
          {"high_freq_factor", r.high_freq_factor},
          {"original_max_position_embeddings", static_cast<int64_t>(r.original_positions)}};
}

}  // namespace

std::optional<TextKind> text_kind_from_name(std::string_view model_type) {
  const auto* row = std::ranges::find(kTextTypes, model_type, &TextType::name);
  return row == kTextTypes.end() ? std::nullopt : std::optional(row->kind);
}

TextConfig read_text_config(const Section& s, const std::string& type) {
  s.require("hidden_act", "silu", "silu");
  TextConfig t;
  read_kind(s, s.word("model_type", type), t);
  t.vocab = s.integer("vocab_size", t.vocab);
  t.hidden = s.integer("hidden_size", t.hidden);
  t.intermediate = s.integer("intermediate_size", t.intermediate);
  t.layers = s.layers("num_hidden_layers", t.layers);
  t.heads = s.integer("num_attention_heads", t.heads);
  t.kv_heads = s.integer("num_key_value_heads", t.heads);
  t.head_size = s.integer("head_dim", t.kind == TextKind::kQwen3 ? 128 : t.hidden / t.heads);
  t.max_positions = s.integer("max_position_embeddings", t.max_positions);
  t.norm_eps = s.positive("rms_norm_eps", t.norm_eps);
  read_rope(s, t);
  t.bos_token = token_id(s, "bos_token_id", t.bos_token);
  read_eos(s, t);
  t.pad_token = token_id(s, "pad_token_id", t.pad_token);
  return t;
}

Json text_config_json(const TextConfig& t) {
  const TextType& type = *std::ranges::find(kTextTypes, t.kind, &TextType::kind);
  Json json = {{"model_type", type.name},
               {"architectures", {type.architecture}},
               {"bos_token_id", id_or_null(t.bos_token)},
               {"eos_token_id", eos_json(t)},
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
  if (t.rope_scaling.kind != RopeScaling::Kind::kNone || !t.rope_sections.empty())
    json["rope_scaling"] = rope_json(t);
  return json;
}

}  // namespace mm::model
