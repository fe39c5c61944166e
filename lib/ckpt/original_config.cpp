#include <algorithm>
#include <cmath>
#include <string_view>

#include "lib/base/error.h"
#include "lib/ckpt/original_names.h"

namespace mm::ckpt {
namespace {

/// Shapes by name; what is not there is an error.
class Shapes {
 public:
  Shapes(const std::vector<TensorSource>& tensors, const std::string& origin)
      : tensors_(tensors), origin_(origin) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  uint64_t at(std::string_view name, size_t dimension) const {
    const TensorSource* tensor = find(name);
    if (tensor == nullptr || tensor->shape.size() <= dimension)
      throw DataError("{}: {} is missing or has too few dimensions; give --config", origin_, name);
    return tensor->shape[dimension];
  }
  uint64_t layers() const {
    uint64_t count = 0;
    while (has("transformer_blocks." + std::to_string(count) + ".ff.net.2.bias")) ++count;
    return count;
  }

 private:
  const TensorSource* find(std::string_view name) const {
    const auto at = std::ranges::lower_bound(
        tensors_, name, {}, [](const TensorSource& t) { return std::string_view(t.name); });
    return at != tensors_.end() && at->name == name ? &*at : nullptr;
  }

  const std::vector<TensorSource>& tensors_;
  const std::string& origin_;
};

/// As published: DiT-S, B, L and XL; PixArt of 72 channels a head; SD3 of 64.
uint64_t head_size(OriginalFamily family, uint64_t hidden, const std::string& origin) {
  const bool xl = hidden == 1152;
  if (family == OriginalFamily::kPixart && xl) return 72;
  if (family == OriginalFamily::kSd3 && hidden % 64 == 0) return 64;
  if (family == OriginalFamily::kDit && (hidden == 384 || hidden == 768 || hidden == 1024))
    return 64;
  if (family == OriginalFamily::kDit && xl) return 72;
  throw DataError(
      "{}: no published model has {} channels, so the count of heads is not known; give --config "
      "with diffusers' config.json",
      origin, hidden);
}

void add_captions(Json& config, const Shapes& shapes, uint64_t hidden) {
  config["caption_channels"] = shapes.at("caption_projection.linear_1.weight", 1);
  config["cross_attention_dim"] = hidden;
  config["norm_type"] = "ada_norm_single";
  config["norm_eps"] = 1e-6;
  config["use_additional_conditions"] =
      shapes.has("adaln_single.emb.resolution_embedder.linear_1.weight");
}

void add_sd3(Json& config, const Shapes& shapes, uint64_t hidden) {
  config["caption_projection_dim"] = hidden;
  config["joint_attention_dim"] = shapes.at("context_embedder.weight", 1);
  config["pooled_projection_dim"] = shapes.at("time_text_embed.text_embedder.linear_1.weight", 1);
  config["pos_embed_max_size"] = static_cast<uint64_t>(
      std::lround(std::sqrt(static_cast<double>(shapes.at("pos_embed.pos_embed", 1)))));
  Json dual = Json::array();
  for (uint64_t i = 0; i < shapes.layers(); ++i)
    if (shapes.has("transformer_blocks." + std::to_string(i) + ".attn2.to_q.weight"))
      dual.push_back(i);
  config["dual_attention_layers"] = dual;
  if (shapes.has("transformer_blocks.0.attn.norm_q.weight")) config["qk_norm"] = "rms_norm";
}

}  // namespace

Json implied_config(const std::vector<TensorSource>& tensors, OriginalFamily family, int64_t sides,
                    const std::string& origin) {
  const Shapes shapes(tensors, origin);
  const uint64_t hidden = shapes.at("pos_embed.proj.weight", 0),
                 channels = shapes.at("pos_embed.proj.weight", 1),
                 patch = shapes.at("pos_embed.proj.weight", 2),
                 size = head_size(family, hidden, origin);
  const char* out = family == OriginalFamily::kDit ? "proj_out_2.bias" : "proj_out.bias";
  Json config = {{"_class_name", diffusers_class(family)},
                 {"attention_head_dim", size},
                 {"num_attention_heads", hidden / size},
                 {"num_layers", shapes.layers()},
                 {"in_channels", channels},
                 {"out_channels", shapes.at(out, 0) / std::max<uint64_t>(1, patch * patch)},
                 {"patch_size", patch}};
  if (sides > 0) config["sample_size"] = static_cast<uint64_t>(sides) * patch;
  if (family == OriginalFamily::kDit) {
    config["norm_type"] = "ada_norm_zero";
    config["num_embeds_ada_norm"] =
        shapes.at("transformer_blocks.0.norm1.emb.class_embedder.embedding_table.weight", 0) - 1;
  }
  if (family == OriginalFamily::kPixart) add_captions(config, shapes, hidden);
  if (family == OriginalFamily::kSd3) add_sd3(config, shapes, hidden);
  if (family != OriginalFamily::kSd3) config["activation_fn"] = "gelu-approximate";
  return config;
}

int64_t original_grid(const std::vector<TensorSource>& tensors) {
  for (const TensorSource& tensor : tensors)
    if (tensor.name == "pos_embed" && tensor.shape.size() == 3)
      return std::lround(std::sqrt(static_cast<double>(tensor.shape[1])));
  return 0;
}

void settle_config(Json& config, const std::vector<TensorSource>& tensors, OriginalFamily family) {
  if (family == OriginalFamily::kDit) {
    config["time_embedding_divisor"] = 128;
    config["norm_eps"] = 1e-6;
  }
  const auto null =
      std::ranges::find(tensors, "caption_projection.y_embedding", &TensorSource::name);
  if (null == tensors.end() || null->shape.size() != 2) return;
  config["null_caption"] = true;
  config["caption_tokens"] = null->shape[0];
}

}  // namespace mm::ckpt
