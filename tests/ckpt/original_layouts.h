#pragma once
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt::test {

// The papers' checkpoints made from diffusers' weights: the way back, written for tests alone.

/// A tensor in memory.
struct Held {
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;
};

/// Weights of a directory that are taken one by one.
class Taken {
 public:
  explicit Taken(const std::filesystem::path& directory) {
    const HfWeights weights = HfWeights::open(directory);
    for (const auto& [name, tensor] : weights.tensors())
      held_[name] = {tensor.entry->dtype, tensor.entry->shape, tensor.read()};
  }
  bool has(const std::string& name) const { return held_.contains(name); }
  bool empty() const { return held_.empty(); }
  std::string first() const { return held_.begin()->first; }
  Held take(const std::string& name) {
    REQUIRE_MESSAGE(has(name), name);
    Held out = std::move(held_.at(name));
    held_.erase(name);
    return out;
  }
  /// Rows of several tensors under each other.
  Held fuse(const std::vector<std::string>& names) {
    Held out;
    for (const std::string& name : names) {
      Held part = take(name);
      if (out.shape.empty()) {
        out = std::move(part);
        continue;
      }
      out.shape[0] += part.shape[0];
      out.bytes.insert(out.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    return out;
  }
  Held swapped(const std::string& name) {
    Held out = take(name);
    std::rotate(out.bytes.begin(),
                out.bytes.begin() + static_cast<std::ptrdiff_t>(out.bytes.size() / 2),
                out.bytes.end());
    return out;
  }

 private:
  std::map<std::string, Held> held_;
};

using Original = std::map<std::string, Held>;

inline void write_original(const std::filesystem::path& path, const Original& tensors) {
  std::vector<TensorSource> sources;
  for (const auto& [name, held] : tensors)
    sources.push_back(
        {.name = name, .dtype = held.dtype, .shape = held.shape, .bytes = held.bytes});
  write_safetensors(path, sources);
}

inline const std::vector<std::string> kKinds{"weight", "bias"};

inline Original original_dit(Taken from, int layers) {
  Original out;
  for (const std::string& k : kKinds) {
    out["x_embedder.proj." + k] = from.take("pos_embed.proj." + k);
    out["final_layer.adaLN_modulation.1." + k] = from.take("proj_out_1." + k);
    out["final_layer.linear." + k] = from.take("proj_out_2." + k);
    for (int i = 0; i < layers; ++i) {
      const std::string b = "transformer_blocks." + std::to_string(i) + ".",
                        o = "blocks." + std::to_string(i) + ".";
      const Held time1 = from.take(b + "norm1.emb.timestep_embedder.linear_1." + k),
                 time2 = from.take(b + "norm1.emb.timestep_embedder.linear_2." + k);
      out["t_embedder.mlp.0." + k] = time1;
      out["t_embedder.mlp.2." + k] = time2;
      if (k == "weight")
        out["y_embedder.embedding_table.weight"] =
            from.take(b + "norm1.emb.class_embedder.embedding_table.weight");
      out[o + "attn.qkv." + k] =
          from.fuse({b + "attn1.to_q." + k, b + "attn1.to_k." + k, b + "attn1.to_v." + k});
      out[o + "attn.proj." + k] = from.take(b + "attn1.to_out.0." + k);
      out[o + "mlp.fc1." + k] = from.take(b + "ff.net.0.proj." + k);
      out[o + "mlp.fc2." + k] = from.take(b + "ff.net.2." + k);
      out[o + "adaLN_modulation.1." + k] = from.take(b + "norm1.linear." + k);
    }
  }
  REQUIRE_MESSAGE(from.empty(), from.first());
  out["pos_embed"] = {DType::kF32, {1, 16, 48}, std::vector<std::byte>(16 * 48 * 4)};
  return out;
}

inline Original original_pixart(Taken from, int layers) {
  Original out;
  const auto move = [&](const std::string& to, const std::string& name) {
    for (const std::string& k : kKinds) out[to + k] = from.take(name + k);
  };
  move("x_embedder.proj.", "pos_embed.proj.");
  move("t_embedder.mlp.0.", "adaln_single.emb.timestep_embedder.linear_1.");
  move("t_embedder.mlp.2.", "adaln_single.emb.timestep_embedder.linear_2.");
  move("t_block.1.", "adaln_single.linear.");
  move("y_embedder.y_proj.fc1.", "caption_projection.linear_1.");
  move("y_embedder.y_proj.fc2.", "caption_projection.linear_2.");
  move("final_layer.linear.", "proj_out.");
  out["final_layer.scale_shift_table"] = from.take("scale_shift_table");
  for (int i = 0; i < layers; ++i) {
    const std::string b = "transformer_blocks." + std::to_string(i) + ".",
                      o = "blocks." + std::to_string(i) + ".";
    out[o + "scale_shift_table"] = from.take(b + "scale_shift_table");
    move(o + "attn.proj.", b + "attn1.to_out.0.");
    move(o + "cross_attn.q_linear.", b + "attn2.to_q.");
    move(o + "cross_attn.proj.", b + "attn2.to_out.0.");
    move(o + "mlp.fc1.", b + "ff.net.0.proj.");
    move(o + "mlp.fc2.", b + "ff.net.2.");
    for (const std::string& k : kKinds) {
      out[o + "attn.qkv." + k] =
          from.fuse({b + "attn1.to_q." + k, b + "attn1.to_k." + k, b + "attn1.to_v." + k});
      out[o + "cross_attn.kv_linear." + k] =
          from.fuse({b + "attn2.to_k." + k, b + "attn2.to_v." + k});
    }
  }
  REQUIRE_MESSAGE(from.empty(), from.first());
  out["pos_embed"] = {DType::kF32, {1, 16, 48}, std::vector<std::byte>(16 * 48 * 4)};
  return out;
}

/// `prefix` as single files of the whole pipeline have it.
inline Original original_sd3(Taken from, int layers, const std::string& prefix) {
  Original out;
  const auto move = [&](const std::string& to, const std::string& name) {
    for (const std::string& k : kKinds) out[prefix + to + k] = from.take(name + k);
  };
  const auto qkv = [&](const std::string& to, const std::vector<std::string>& names) {
    for (const std::string& k : kKinds)
      out[prefix + to + k] = from.fuse({names[0] + k, names[1] + k, names[2] + k});
  };
  const auto maybe = [&](const std::string& to, const std::string& name) {
    if (from.has(name)) out[prefix + to] = from.take(name);
  };
  out[prefix + "pos_embed"] = from.take("pos_embed.pos_embed");
  move("x_embedder.proj.", "pos_embed.proj.");
  move("t_embedder.mlp.0.", "time_text_embed.timestep_embedder.linear_1.");
  move("t_embedder.mlp.2.", "time_text_embed.timestep_embedder.linear_2.");
  move("y_embedder.mlp.0.", "time_text_embed.text_embedder.linear_1.");
  move("y_embedder.mlp.2.", "time_text_embed.text_embedder.linear_2.");
  move("context_embedder.", "context_embedder.");
  move("final_layer.linear.", "proj_out.");
  for (const std::string& k : kKinds)
    out[prefix + "final_layer.adaLN_modulation.1." + k] = from.swapped("norm_out.linear." + k);
  for (int i = 0; i < layers; ++i) {
    const std::string b = "transformer_blocks." + std::to_string(i) + ".",
                      o = "joint_blocks." + std::to_string(i) + ".", x = o + "x_block.",
                      c = o + "context_block.";
    qkv(x + "attn.qkv.", {b + "attn.to_q.", b + "attn.to_k.", b + "attn.to_v."});
    qkv(c + "attn.qkv.", {b + "attn.add_q_proj.", b + "attn.add_k_proj.", b + "attn.add_v_proj."});
    move(x + "attn.proj.", b + "attn.to_out.0.");
    move(x + "mlp.fc1.", b + "ff.net.0.proj.");
    move(x + "mlp.fc2.", b + "ff.net.2.");
    move(x + "adaLN_modulation.1.", b + "norm1.linear.");
    maybe(x + "attn.ln_q.weight", b + "attn.norm_q.weight");
    maybe(x + "attn.ln_k.weight", b + "attn.norm_k.weight");
    maybe(c + "attn.ln_q.weight", b + "attn.norm_added_q.weight");
    maybe(c + "attn.ln_k.weight", b + "attn.norm_added_k.weight");
    if (from.has(b + "attn2.to_q.weight")) {
      qkv(x + "attn2.qkv.", {b + "attn2.to_q.", b + "attn2.to_k.", b + "attn2.to_v."});
      move(x + "attn2.proj.", b + "attn2.to_out.0.");
      maybe(x + "attn2.ln_q.weight", b + "attn2.norm_q.weight");
      maybe(x + "attn2.ln_k.weight", b + "attn2.norm_k.weight");
    }
    if (i + 1 == layers) {
      for (const std::string& k : kKinds)
        out[prefix + c + "adaLN_modulation.1." + k] = from.swapped(b + "norm1_context.linear." + k);
      continue;
    }
    move(c + "adaLN_modulation.1.", b + "norm1_context.linear.");
    move(c + "attn.proj.", b + "attn.to_add_out.");
    move(c + "mlp.fc1.", b + "ff_context.net.0.proj.");
    move(c + "mlp.fc2.", b + "ff_context.net.2.");
  }
  REQUIRE_MESSAGE(from.empty(), from.first());
  return out;
}

}  // namespace mm::ckpt::test
