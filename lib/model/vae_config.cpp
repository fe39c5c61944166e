#include "lib/model/vae_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/base/error.h"
#include "lib/model/config_section.h"

namespace mm::model {
namespace {

constexpr const char *kClass = "AutoencoderKL", *kDown = "DownEncoderBlock2D",
                     *kUp = "UpDecoderBlock2D";
constexpr size_t kMostLevels = 8;

void require_blocks(const Section& s, const char* key, const std::string& kind, size_t levels) {
  if (!s.has(key)) {
    if (levels == 1) return;
    throw DataError("{}.{} is missing; expected {} times \"{}\"", s.where, key, levels, kind);
  }
  const Json& list = s.json.at(key);
  const bool right = list.is_array() && list.size() == levels &&
                     std::ranges::all_of(list, [&](const Json& at) { return at == kind; });
  if (!right)
    throw DataError("{}.{} is {}; only {} times \"{}\" is supported", s.where, key,
                    list.dump().substr(0, 200), levels, kind);
}

double shift_of(const Section& s) {
  if (!s.has("shift_factor")) return 0;
  const Json& value = s.json.at("shift_factor");
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    throw DataError("{}.shift_factor: {} is not a number", s.where, value.dump());
  return value.get<double>();
}

void check_channels(const Section& s, const VaeConfig& c) {
  if (c.channels.empty() || c.channels.size() > kMostLevels)
    throw DataError("{}.block_out_channels has {} entries; expected 1 to {}", s.where,
                    c.channels.size(), kMostLevels);
  for (const int64_t width : c.channels) {
    if (width % c.groups != 0)
      throw DataError("{}.block_out_channels: {} channels are no multiple of norm_num_groups {}",
                      s.where, width, c.groups);
  }
}

}  // namespace

VaeConfig vae_config_from_json(const Json& json, const std::string& where) {
  if (!json.is_object()) throw DataError("{}: expected a JSON object", where);
  const Section s{json, where};
  s.require("_class_name", "(missing)", kClass);
  s.require("act_fn", "silu", "silu");
  VaeConfig c;
  c.in_channels = s.integer("in_channels", c.in_channels);
  c.out_channels = s.integer("out_channels", c.out_channels);
  c.latent_channels = s.integer("latent_channels", c.latent_channels);
  c.channels = s.integers("block_out_channels", c.channels, 1);
  c.layers_per_block = s.integer("layers_per_block", c.layers_per_block);
  c.groups = s.integer("norm_num_groups", c.groups);
  c.mid_attention = s.boolean("mid_block_add_attention", true);
  c.quant_conv = s.boolean("use_quant_conv", true);
  c.post_quant_conv = s.boolean("use_post_quant_conv", true);
  c.scale = s.positive("scaling_factor", c.scale);
  c.shift = shift_of(s);
  c.sample_size = s.integer("sample_size", c.sample_size);
  c.fp32_only = s.boolean("force_upcast", true);
  check_channels(s, c);
  require_blocks(s, "down_block_types", kDown, c.channels.size());
  require_blocks(s, "up_block_types", kUp, c.channels.size());
  for (const char* key : {"latents_mean", "latents_std"}) {
    if (s.has(key))
      throw DataError("{}.{}: latents with means of their own are not supported", where, key);
  }
  return c;
}

VaeConfig read_vae_config(const std::filesystem::path& path) {
  return vae_config_from_json(read_json_file(path), path.string());
}

Json to_json(const VaeConfig& c) {
  const std::vector<std::string> down(c.channels.size(), kDown), up(c.channels.size(), kUp);
  return {{"_class_name", kClass},
          {"act_fn", "silu"},
          {"block_out_channels", c.channels},
          {"down_block_types", down},
          {"force_upcast", c.fp32_only},
          {"in_channels", c.in_channels},
          {"latent_channels", c.latent_channels},
          {"layers_per_block", c.layers_per_block},
          {"mid_block_add_attention", c.mid_attention},
          {"norm_num_groups", c.groups},
          {"out_channels", c.out_channels},
          {"sample_size", c.sample_size},
          {"scaling_factor", c.scale},
          {"shift_factor", c.shift == 0 ? Json() : Json(c.shift)},
          {"up_block_types", up},
          {"use_post_quant_conv", c.post_quant_conv},
          {"use_quant_conv", c.quant_conv}};
}

}  // namespace mm::model
