#include "lib/model/diffusion_config.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/model/config_section.h"

namespace mm::model {
namespace {

struct FamilyName {
  DiffusionFamily family;
  const char* name;
  const char* class_name;
  int64_t time_divisor;  ///< what diffusers' class does; also below
  bool mask_captions;
};
constexpr std::array kFamilies{
    FamilyName{DiffusionFamily::kDit, "dit", "DiTTransformer2DModel", 127, true},
    FamilyName{DiffusionFamily::kPixart, "pixart", "PixArtTransformer2DModel", 128, true},
    FamilyName{DiffusionFamily::kSd3, "sd3", "SD3Transformer2DModel", 128, false}};

const FamilyName& row_of(DiffusionFamily family) {
  return *std::ranges::find(kFamilies, family, &FamilyName::family);
}

// Output channels are those of the input, or twice as many.
bool reads_learned_sigma(const Section& s, int64_t in_channels) {
  const int64_t out = s.integer("out_channels", in_channels);
  if (out != in_channels && out != 2 * in_channels) {
    throw DataError("{}: out_channels is {}, expected {} or {}", s.where, out, in_channels,
                    2 * in_channels);
  }
  return out == 2 * in_channels;
}

// What all three classes have, with their defaults.
DiffusionConfig read_sizes(const Section& s, const FamilyName& row) {
  const bool sd3 = row.family == DiffusionFamily::kSd3;
  DiffusionConfig c{.family = row.family};
  c.heads = s.integer("num_attention_heads", sd3 ? 18 : 16);
  c.head_size = s.integer("attention_head_dim", sd3 ? 64 : 72);
  c.layers = s.layers("num_layers", sd3 ? 18 : 28);
  c.in_channels = s.integer("in_channels", sd3 ? 16 : 4);
  c.learned_sigma = reads_learned_sigma(s, c.in_channels);
  c.sample_size =
      s.integer("sample_size", sd3 || row.family == DiffusionFamily::kPixart ? 128 : 32);
  c.patch = s.integer("patch_size", 2);
  c.time_divisor = s.integer("time_embedding_divisor", row.time_divisor);
  c.mask_captions = s.boolean("mask_captions", row.mask_captions);
  if (!sd3) {
    s.require("activation_fn", "gelu-approximate", "gelu-approximate");
    if (!s.boolean("attention_bias", true) || s.boolean("norm_elementwise_affine", false))
      throw DataError("{}: expected attention with biases and norms without weights", s.where);
  }
  return c;
}

void read_dit(const Section& s, DiffusionConfig& c) {
  s.require("norm_type", "ada_norm_zero", "ada_norm_zero");
  c.classes = s.integer("num_embeds_ada_norm", 1000);
  c.mlp_norm_eps = s.positive("norm_eps", 1e-5);
  c.own_embedders = s.boolean("own_embedders", false);
}

void read_pixart(const Section& s, DiffusionConfig& c) {
  s.require("norm_type", "ada_norm_single", "ada_norm_single");
  s.require("attention_type", "default", "default");
  c.caption_width = s.integer("caption_channels", 4096);
  c.attention_norm_eps = c.mlp_norm_eps = s.positive("norm_eps", 1e-6);
  c.position_scale = s.positive("interpolation_scale",
                                static_cast<double>(std::max<int64_t>(c.sample_size / 64, 1)));
  c.size_embedders = s.boolean("use_additional_conditions", c.sample_size == 128);
  c.null_caption = s.boolean("null_caption", false);
  c.caption_tokens = s.integer("caption_tokens", 120);
  const Section text = s.child("caption_encoder");
  c.text.vocab = text.integer("vocab_size", 0, 0);
  c.text.hidden = text.integer("hidden_size", c.text.hidden);
  c.text.layers = text.layers("num_hidden_layers", c.text.layers);
  c.text.heads = text.integer("num_attention_heads", c.text.heads);
}

void read_sd3(const Section& s, DiffusionConfig& c) {
  c.caption_width = s.integer("joint_attention_dim", 4096);
  c.pooled_width = s.integer("pooled_projection_dim", 2048);
  c.position_table = s.integer("pos_embed_max_size", 96);
  c.dual_layers = s.integers("dual_attention_layers", {}, 0);
  c.qk_norm = s.word("qk_norm", "") == "rms_norm";
  if (s.has("qk_norm")) s.require("qk_norm", "", "rms_norm");
  c.caption_tokens = s.integer("caption_tokens", 333);
  const int64_t projected = s.integer("caption_projection_dim", c.hidden());
  if (projected != c.hidden()) {
    throw DataError("{}: caption_projection_dim is {}, the model is {} wide", s.where, projected,
                    c.hidden());
  }
}

void write_sizes(const DiffusionConfig& c, Json& json) {
  json["attention_head_dim"] = c.head_size;
  json["in_channels"] = c.in_channels;
  json["num_attention_heads"] = c.heads;
  json["num_layers"] = c.layers;
  json["out_channels"] = c.out_channels();
  json["patch_size"] = c.patch;
  json["sample_size"] = c.sample_size;
  if (c.time_divisor != row_of(c.family).time_divisor)
    json["time_embedding_divisor"] = c.time_divisor;
  if (c.mask_captions != row_of(c.family).mask_captions) json["mask_captions"] = c.mask_captions;
}

void write_pixart(const DiffusionConfig& c, Json& json) {
  json["caption_channels"] = c.caption_input();
  json["cross_attention_dim"] = c.hidden();
  json["interpolation_scale"] = c.position_scale;
  json["norm_eps"] = c.mlp_norm_eps;
  json["norm_type"] = "ada_norm_single";
  json["num_embeds_ada_norm"] = 1000;
  json["use_additional_conditions"] = c.size_embedders;
  if (c.null_caption) json["null_caption"] = true;
  if (c.caption_tokens != 120) json["caption_tokens"] = c.caption_tokens;
  if (c.text.vocab == 0) return;
  json["caption_encoder"] = {{"vocab_size", c.text.vocab},
                             {"hidden_size", c.text.hidden},
                             {"num_hidden_layers", c.text.layers},
                             {"num_attention_heads", c.text.heads}};
}

void write_sd3(const DiffusionConfig& c, Json& json) {
  json["caption_projection_dim"] = c.hidden();
  json["joint_attention_dim"] = c.caption_width;
  json["pooled_projection_dim"] = c.pooled_width;
  json["pos_embed_max_size"] = c.position_table;
  json["dual_attention_layers"] = c.dual_layers;
  if (c.qk_norm) json["qk_norm"] = "rms_norm";
  if (c.caption_tokens != 333) json["caption_tokens"] = c.caption_tokens;
}

}  // namespace

const char* diffusion_family_name(DiffusionFamily family) { return row_of(family).name; }

bool is_diffusion_config(const Json& json) {
  if (!json.is_object() || !json.contains("_class_name")) return false;
  return std::ranges::any_of(
      kFamilies, [&](const FamilyName& row) { return json.at("_class_name") == row.class_name; });
}

DiffusionConfig diffusion_config_from_json(const Json& json, const std::string& origin) {
  if (!json.is_object()) throw DataError("{}: expected an object", origin);
  const Section s{json, origin};
  const std::string name = s.word("_class_name", "");
  const auto* row = std::ranges::find(kFamilies, name, &FamilyName::class_name);
  if (row == kFamilies.end()) {
    throw DataError(
        "{}: _class_name is \"{}\", expected DiTTransformer2DModel, PixArtTransformer2DModel or "
        "SD3Transformer2DModel",
        origin, name);
  }
  DiffusionConfig c = read_sizes(s, *row);
  if (row->family == DiffusionFamily::kDit) read_dit(s, c);
  if (row->family == DiffusionFamily::kPixart) read_pixart(s, c);
  if (row->family == DiffusionFamily::kSd3) read_sd3(s, c);
  check_config(c, origin);
  return c;
}

DiffusionConfig read_diffusion_config(const std::filesystem::path& config_json) {
  return diffusion_config_from_json(read_json_file(config_json), config_json.string());
}

Json to_json(const DiffusionConfig& c) {
  Json json = {{"_class_name", row_of(c.family).class_name}};
  if (c.family != DiffusionFamily::kSd3) {
    json["activation_fn"] = "gelu-approximate";
    json["attention_bias"] = true;
    json["norm_elementwise_affine"] = false;
  }
  write_sizes(c, json);
  if (c.family == DiffusionFamily::kDit) {
    json["norm_eps"] = c.mlp_norm_eps;
    json["norm_type"] = "ada_norm_zero";
    json["num_embeds_ada_norm"] = c.classes;
    if (c.own_embedders) json["own_embedders"] = true;
  }
  if (c.family == DiffusionFamily::kPixart) write_pixart(c, json);
  if (c.family == DiffusionFamily::kSd3) write_sd3(c, json);
  return json;
}

void check_config(const DiffusionConfig& c, const std::string& origin) {
  if (c.heads < 1 || c.head_size < 1 || c.layers < 1 || c.in_channels < 1 || c.patch < 1 ||
      c.sample_size < c.patch)
    throw DataError(
        "{}: sizes of a diffusion transformer must be at least 1, and sample_size at "
        "least patch_size",
        origin);
  if (c.hidden() > kMaxConfigSize || c.hidden() % 4 != 0) {
    throw DataError("{}: {} heads of {} are {} wide, expected a multiple of 4 up to {}", origin,
                    c.heads, c.head_size, c.hidden(), kMaxConfigSize);
  }
  if (c.time_divisor != 127 && c.time_divisor != 128)
    throw DataError("{}: time embedding divisor {}, expected 127 or 128", origin, c.time_divisor);
  if (c.size_embedders && c.hidden() % 3 != 0) {
    throw DataError("{}: size embedders divide the width by 3, it is {}", origin, c.hidden());
  }
  if (std::ranges::any_of(c.dual_layers, [&](int64_t l) { return l < 0 || l >= c.layers; }))
    throw DataError("{}: dual_attention_layers beyond the {} layers", origin, c.layers);
  if (c.text.vocab > 0 &&
      (c.family != DiffusionFamily::kPixart || c.text.hidden % c.text.heads != 0)) {
    throw DataError(
        "{}: a caption encoder belongs to the pixart family, its {} heads must divide "
        "its width of {}",
        origin, c.text.heads, c.text.hidden);
  }
}

}  // namespace mm::model
