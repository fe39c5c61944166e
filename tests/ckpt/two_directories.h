#pragma once
// Hugging Face directories of a vision tower and of a language model, small and random.
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/safetensors_writer.h"
#include "tests/ckpt/two_rank_save.h"

namespace mm::ckpt::test {

/// Tensors with values of their own, written together.
class TinyWeights {
 public:
  /// Norms' weights are 1, all else is evenly spread over -0.25 to 0.25.
  void add(const std::string& name, std::vector<uint64_t> shape) {
    uint64_t elements = 1;
    for (const uint64_t side : shape) elements *= side;
    std::vector<float> values(elements, 1.0F);
    if (name.find("norm") == std::string::npos || name.ends_with(".bias")) {
      for (float& value : values) value = next();
    }
    bytes_.push_back(floats(values));
    tensors_.push_back({.name = name, .dtype = DType::kF32, .shape = std::move(shape)});
  }
  void linear(const std::string& name, uint64_t out, uint64_t in, bool bias) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  void norm(const std::string& name, uint64_t width, bool bias) {
    add(name + ".weight", {width});
    if (bias) add(name + ".bias", {width});
  }
  void write(const std::filesystem::path& directory, const Json& config) {
    std::filesystem::create_directories(directory);
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].bytes = bytes_[i];
    write_safetensors(directory / "model.safetensors", tensors_);
    write_file_atomic(directory / "config.json", config.dump());
  }

 private:
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(state_ >> 40U) / static_cast<float>(1U << 25U) - 0.25F;
  }
  uint64_t state_ = 1;
  std::vector<TensorSource> tensors_;
  std::vector<std::vector<std::byte>> bytes_;
};

inline void add_layers(TinyWeights& weights, const std::string& prefix, bool class_token) {
  if (class_token) weights.add(prefix + "embeddings.class_embedding", {8});
  weights.add(prefix + "embeddings.patch_embedding.weight", {8, 3, 2, 2});
  if (!class_token) weights.add(prefix + "embeddings.patch_embedding.bias", {8});
  weights.add(prefix + "embeddings.position_embedding.weight", {class_token ? 5U : 4U, 8});
  if (class_token) weights.norm(prefix + "pre_layrnorm", 8, true);
  for (const char* layer : {"encoder.layers.0.", "encoder.layers.1."}) {
    for (const char* norm : {"layer_norm1", "layer_norm2"})
      weights.norm(prefix + layer + norm, 8, true);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      weights.linear(prefix + layer + "self_attn." + name, 8, 8, true);
    weights.linear(prefix + layer + "mlp.fc1", 16, 8, true);
    weights.linear(prefix + layer + "mlp.fc2", 8, 16, true);
  }
  weights.norm(prefix + "post_layernorm", 8, true);
}

inline Json tiny_vision_config(const char* type) {
  const bool clip = std::string_view(type).starts_with("clip");
  return {{"model_type", type},     {"hidden_act", clip ? "quick_gelu" : "gelu_pytorch_tanh"},
          {"hidden_size", 8},       {"intermediate_size", 16},
          {"num_hidden_layers", 2}, {"num_attention_heads", 2},
          {"image_size", 4},        {"patch_size", 2}};
}

/// CLIP with both towers: two layers of width 8 on pictures of 4 pixels, 4 patches; three tensors
/// that no LLaVA has, and one that is computed.
inline std::filesystem::path write_clip(const std::filesystem::path& directory) {
  TinyWeights weights;
  add_layers(weights, "vision_model.", true);
  weights.add("vision_model.embeddings.position_ids", {5});
  weights.add("text_model.final_layer_norm.weight", {4});
  weights.add("visual_projection.weight", {4, 8});
  weights.add("logit_scale", {1});
  weights.write(directory, {{"model_type", "clip"},
                            {"text_config", {{"hidden_size", 4}}},
                            {"vision_config", tiny_vision_config("clip_vision_model")}});
  write_file_atomic(directory / "preprocessor_config.json", R"({"crop_size": 4})");
  write_file_atomic(directory / "tokenizer.json", R"({"of": "vision"})");
  return directory;
}

/// SigLIP's vision tower alone, its tensors named with `prefix`.
inline std::filesystem::path write_siglip(const std::filesystem::path& directory,
                                          const std::string& prefix) {
  TinyWeights weights;
  add_layers(weights, prefix, false);
  weights.write(directory, tiny_vision_config("siglip_vision_model"));
  return directory;
}

/// Llama of two layers, width 16, and `rows` words; qwen2 has biases and a tied head.
inline std::filesystem::path write_language(const std::filesystem::path& directory, uint64_t rows,
                                            const std::string& type = "llama") {
  TinyWeights weights;
  const bool qwen = type == "qwen2";
  weights.add("model.embed_tokens.weight", {rows, 16});
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string at = layer;
    weights.norm(at + "input_layernorm", 16, false);
    weights.norm(at + "post_attention_layernorm", 16, false);
    weights.linear(at + "self_attn.q_proj", 16, 16, qwen);
    weights.linear(at + "self_attn.k_proj", 8, 16, qwen);
    weights.linear(at + "self_attn.v_proj", 8, 16, qwen);
    weights.linear(at + "self_attn.o_proj", 16, 16, false);
    weights.linear(at + "mlp.gate_proj", 24, 16, false);
    weights.linear(at + "mlp.up_proj", 24, 16, false);
    weights.linear(at + "mlp.down_proj", 16, 24, false);
    weights.add(at + "self_attn.rotary_emb.inv_freq", {2});
  }
  weights.norm("model.norm", 16, false);
  if (!qwen) weights.add("lm_head.weight", {rows, 16});
  weights.write(directory, {{"model_type", type},
                            {"vocab_size", rows},
                            {"hidden_size", 16},
                            {"intermediate_size", 24},
                            {"num_hidden_layers", 2},
                            {"num_attention_heads", 4},
                            {"num_key_value_heads", 2},
                            {"rms_norm_eps", 1e-5},
                            {"tie_word_embeddings", qwen},
                            {"torch_dtype", "float32"}});
  write_file_atomic(directory / "tokenizer.model", "toy");
  write_file_atomic(directory / "generation_config.json", "{}");
  return directory;
}

}  // namespace mm::ckpt::test
