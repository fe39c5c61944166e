#include "lib/ckpt/original_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <span>
#include <string_view>

#include "lib/base/error.h"
#include "lib/ckpt/tensor_parts.h"

namespace mm::ckpt {
namespace {

constexpr std::string_view kInner = "model.diffusion_model.";

/// A beginning of names, and what it becomes: several targets cut the tensor in equal parts.
struct Rule {
  std::string_view from;
  std::array<std::string_view, 3> to;
  bool swap = false;
};

constexpr std::array kDitRules = {
    Rule{"x_embedder.proj.", {"pos_embed.proj."}},
    Rule{"t_embedder.mlp.0.", {"transformer_blocks.0.norm1.emb.timestep_embedder.linear_1."}},
    Rule{"t_embedder.mlp.2.", {"transformer_blocks.0.norm1.emb.timestep_embedder.linear_2."}},
    Rule{"y_embedder.embedding_table.",
         {"transformer_blocks.0.norm1.emb.class_embedder.embedding_table."}},
    Rule{"final_layer.linear.", {"proj_out_2."}},
    Rule{"final_layer.adaLN_modulation.1.", {"proj_out_1."}}};
constexpr std::array kDitBlock = {
    Rule{"attn.qkv.", {"attn1.to_q.", "attn1.to_k.", "attn1.to_v."}},
    Rule{"attn.proj.", {"attn1.to_out.0."}}, Rule{"mlp.fc1.", {"ff.net.0.proj."}},
    Rule{"mlp.fc2.", {"ff.net.2."}}, Rule{"adaLN_modulation.1.", {"norm1.linear."}}};

constexpr std::array kPixartRules = {
    Rule{"x_embedder.proj.", {"pos_embed.proj."}},
    Rule{"t_embedder.mlp.0.", {"adaln_single.emb.timestep_embedder.linear_1."}},
    Rule{"t_embedder.mlp.2.", {"adaln_single.emb.timestep_embedder.linear_2."}},
    Rule{"csize_embedder.mlp.0.", {"adaln_single.emb.resolution_embedder.linear_1."}},
    Rule{"csize_embedder.mlp.2.", {"adaln_single.emb.resolution_embedder.linear_2."}},
    Rule{"ar_embedder.mlp.0.", {"adaln_single.emb.aspect_ratio_embedder.linear_1."}},
    Rule{"ar_embedder.mlp.2.", {"adaln_single.emb.aspect_ratio_embedder.linear_2."}},
    Rule{"t_block.1.", {"adaln_single.linear."}},
    Rule{"y_embedder.y_proj.fc1.", {"caption_projection.linear_1."}},
    Rule{"y_embedder.y_proj.fc2.", {"caption_projection.linear_2."}},
    Rule{"y_embedder.y_embedding", {"caption_projection.y_embedding"}},
    Rule{"final_layer.linear.", {"proj_out."}},
    Rule{"final_layer.scale_shift_table", {"scale_shift_table"}}};
constexpr std::array kPixartBlock = {
    Rule{"scale_shift_table", {"scale_shift_table"}},
    Rule{"attn.qkv.", {"attn1.to_q.", "attn1.to_k.", "attn1.to_v."}},
    Rule{"attn.proj.", {"attn1.to_out.0."}},
    Rule{"cross_attn.q_linear.", {"attn2.to_q."}},
    Rule{"cross_attn.kv_linear.", {"attn2.to_k.", "attn2.to_v."}},
    Rule{"cross_attn.proj.", {"attn2.to_out.0."}},
    Rule{"mlp.fc1.", {"ff.net.0.proj."}},
    Rule{"mlp.fc2.", {"ff.net.2."}}};

constexpr std::array kSd3Rules = {
    Rule{"pos_embed", {"pos_embed.pos_embed"}},
    Rule{"x_embedder.proj.", {"pos_embed.proj."}},
    Rule{"t_embedder.mlp.0.", {"time_text_embed.timestep_embedder.linear_1."}},
    Rule{"t_embedder.mlp.2.", {"time_text_embed.timestep_embedder.linear_2."}},
    Rule{"y_embedder.mlp.0.", {"time_text_embed.text_embedder.linear_1."}},
    Rule{"y_embedder.mlp.2.", {"time_text_embed.text_embedder.linear_2."}},
    Rule{"context_embedder.", {"context_embedder."}},
    Rule{"final_layer.linear.", {"proj_out."}},
    Rule{"final_layer.adaLN_modulation.1.", {"norm_out.linear."}, true}};
constexpr std::array kSd3Block = {
    Rule{"x_block.attn.qkv.", {"attn.to_q.", "attn.to_k.", "attn.to_v."}},
    Rule{"x_block.attn.proj.", {"attn.to_out.0."}},
    Rule{"x_block.attn.ln_q.", {"attn.norm_q."}},
    Rule{"x_block.attn.ln_k.", {"attn.norm_k."}},
    Rule{"x_block.attn2.qkv.", {"attn2.to_q.", "attn2.to_k.", "attn2.to_v."}},
    Rule{"x_block.attn2.proj.", {"attn2.to_out.0."}},
    Rule{"x_block.attn2.ln_q.", {"attn2.norm_q."}},
    Rule{"x_block.attn2.ln_k.", {"attn2.norm_k."}},
    Rule{"x_block.mlp.fc1.", {"ff.net.0.proj."}},
    Rule{"x_block.mlp.fc2.", {"ff.net.2."}},
    Rule{"x_block.adaLN_modulation.1.", {"norm1.linear."}},
    Rule{"context_block.attn.qkv.", {"attn.add_q_proj.", "attn.add_k_proj.", "attn.add_v_proj."}},
    Rule{"context_block.attn.proj.", {"attn.to_add_out."}},
    Rule{"context_block.attn.ln_q.", {"attn.norm_added_q."}},
    Rule{"context_block.attn.ln_k.", {"attn.norm_added_k."}},
    Rule{"context_block.mlp.fc1.", {"ff_context.net.0.proj."}},
    Rule{"context_block.mlp.fc2.", {"ff_context.net.2."}},
    Rule{"context_block.adaLN_modulation.1.", {"norm1_context.linear."}}};

struct Layout {
  std::string_view class_name, blocks;
  std::span<const Rule> rules, block_rules;
  bool table_is_stored;  ///< "pos_embed" is part of diffusers' file
};

Layout layout_of(OriginalFamily family) {
  switch (family) {
    case OriginalFamily::kDit:
      return {"DiTTransformer2DModel", "blocks.", kDitRules, kDitBlock, false};
    case OriginalFamily::kPixart:
      return {"PixArtTransformer2DModel", "blocks.", kPixartRules, kPixartBlock, false};
    case OriginalFamily::kSd3:
      return {"SD3Transformer2DModel", "joint_blocks.", kSd3Rules, kSd3Block, true};
  }
  throw InternalError("unknown family of checkpoints");
}

/// "blocks.12.attn.qkv.weight" -> 12 and "attn.qkv.weight".
struct BlockName {
  uint64_t number = 0;
  std::string_view rest;
};
std::optional<BlockName> block_name(std::string_view name, std::string_view blocks) {
  if (!name.starts_with(blocks)) return std::nullopt;
  name.remove_prefix(blocks.size());
  BlockName out;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out.number);
  const auto digits = static_cast<size_t>(end - name.data());
  if (error != std::errc() || digits == 0 || digits > 4 || !name.substr(digits).starts_with("."))
    return std::nullopt;
  out.rest = name.substr(digits + 1);
  return out;
}

/// Blocks are numbered from 0; their count.
uint64_t count_blocks(const std::vector<TensorSource>& tensors, std::string_view blocks) {
  uint64_t count = 0;
  for (const TensorSource& tensor : tensors)
    if (const auto block = block_name(tensor.name, blocks))
      count = std::max(count, block->number + 1);
  return count;
}

/// Appends what `tensor`, of the name `rest` inside its block, becomes under `prefix`.
bool append_parts(const TensorSource& tensor, std::string_view rest, std::span<const Rule> rules,
                  const std::string& prefix, std::vector<TensorSource>& out) {
  const auto rule =
      std::ranges::find_if(rules, [&](const Rule& r) { return rest.starts_with(r.from); });
  if (rule == rules.end()) return false;
  const auto parts = static_cast<uint64_t>(
      std::ranges::count_if(rule->to, [](std::string_view name) { return !name.empty(); }));
  for (uint64_t i = 0; i < parts; ++i) {
    TensorSource part = parts == 1 ? tensor : part_of(tensor, i, parts);
    if (rule->swap) part = halves_swapped(part);
    part.name = prefix + std::string(rule->to.at(i)) + std::string(rest.substr(rule->from.size()));
    out.push_back(std::move(part));
  }
  return true;
}

/// Only what lies under "model.diffusion_model.", without it, if there is any.
void keep_inner(std::vector<TensorSource>& tensors, std::vector<std::string>& notes) {
  const auto inner = [](const TensorSource& tensor) { return tensor.name.starts_with(kInner); };
  if (std::ranges::none_of(tensors, inner)) return;
  const size_t others = std::erase_if(tensors, std::not_fn(inner));
  if (others > 0)
    notes.push_back(fmt::format("{} tensors outside {} left out: of other models", others,
                                kInner.substr(0, kInner.size() - 1)));
  for (TensorSource& tensor : tensors) tensor.name.erase(0, kInner.size());
}

bool has(const std::vector<TensorSource>& tensors, std::string_view name) {
  return std::ranges::any_of(tensors, [&](const TensorSource& tensor) {
    return tensor.name == name || tensor.name == std::string(kInner) + std::string(name);
  });
}

}  // namespace

std::string diffusers_class(OriginalFamily family) {
  return std::string(layout_of(family).class_name);
}

std::optional<OriginalFamily> original_family(const std::vector<TensorSource>& tensors) {
  if (!has(tensors, "x_embedder.proj.weight")) return std::nullopt;
  if (has(tensors, "joint_blocks.0.x_block.attn.qkv.weight")) return OriginalFamily::kSd3;
  if (has(tensors, "t_block.1.weight")) return OriginalFamily::kPixart;
  if (has(tensors, "blocks.0.adaLN_modulation.1.weight")) return OriginalFamily::kDit;
  return std::nullopt;
}

std::vector<TensorSource> to_diffusers(std::vector<TensorSource> tensors, OriginalFamily family,
                                       const std::string& origin, std::vector<std::string>& notes) {
  const Layout layout = layout_of(family);
  keep_inner(tensors, notes);
  const uint64_t blocks = count_blocks(tensors, layout.blocks);
  std::vector<TensorSource> out;
  for (const TensorSource& tensor : tensors) {
    if (tensor.name == "pos_embed" && !layout.table_is_stored) {
      notes.emplace_back("pos_embed dropped: computed, not learned");
      continue;
    }
    const auto block = block_name(tensor.name, layout.blocks);
    const std::string prefix =
        block ? fmt::format("transformer_blocks.{}.", block->number) : std::string();
    const size_t before = out.size();
    const bool known = append_parts(tensor, block ? block->rest : std::string_view(tensor.name),
                                    block ? layout.block_rules : layout.rules, prefix, out);
    if (!known)
      throw DataError("{}: {} is no tensor of an original {} checkpoint", origin, tensor.name,
                      layout.class_name);
    // The text stream ends in the last block: its adaLN is a continuous one.
    if (block && block->number + 1 == blocks &&
        block->rest.starts_with("context_block.adaLN_modulation.1."))
      out[before].stream = halves_swapped(tensor).stream;
  }
  std::ranges::sort(out, {}, &TensorSource::name);
  return out;
}

}  // namespace mm::ckpt
