#pragma once
// Random text encoders in Hugging Face's layout, for the toy tokenizer.
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/model/text_encoder.h"
#include "tests/model/stored_tensors.h"

namespace mm::run::test {

/// The oracle's autoencoder: 4 channels, factor 4.
inline std::filesystem::path tiny_vae() {
  return std::filesystem::path(MM_TEST_DATA) / "oracles/vae";
}

inline Json tiny_bert_config() {
  return {{"model_type", "bert"},         {"vocab_size", 64},       {"hidden_size", 16},
          {"intermediate_size", 24},      {"num_hidden_layers", 2}, {"num_attention_heads", 2},
          {"max_position_embeddings", 64}};
}

/// 12 positions; `projection` > 0: with a projection of that width.
inline Json tiny_clip_config(int64_t hidden, int64_t projection) {
  Json config{{"model_type", "clip_text_model"},
              {"architectures", {projection > 0 ? "CLIPTextModelWithProjection" : "CLIPTextModel"}},
              {"vocab_size", 64},
              {"hidden_size", hidden},
              {"intermediate_size", 24},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 2},
              {"max_position_embeddings", 12},
              {"hidden_act", "quick_gelu"},
              {"eos_token_id", 2},
              {"pad_token_id", 0}};
  if (projection > 0) config["projection_dim"] = projection;
  return config;
}

inline Json tiny_t5_config(int64_t width) {
  return {{"model_type", "t5"},
          {"vocab_size", 64},
          {"d_model", width},
          {"d_kv", 6},
          {"d_ff", 20},
          {"num_heads", 2},
          {"num_layers", 2},
          {"feed_forward_proj", "gated-gelu"},
          {"relative_attention_num_buckets", 8},
          {"relative_attention_max_distance", 16},
          {"pad_token_id", 0},
          {"tie_word_embeddings", true}};
}

/// Writes config.json, random weights drawn from `seed` and `tokenizer` (a file) into `directory`.
inline std::filesystem::path write_encoder(const std::filesystem::path& directory,
                                           const Json& config,
                                           const std::filesystem::path& tokenizer, uint64_t seed) {
  std::filesystem::create_directories(directory);
  write_file_atomic(directory / "config.json", config.dump());
  model::Model model;
  model::declare_text_encoder(model, config, "config.json", "");
  const auto params = model::SimpleParams::random(model, seed, at::kFloat);
  std::vector<model::test::StoredTensor> stored;
  for (size_t i = 0; i < model.params.size(); ++i)
    stored.push_back({model.params[i].name, params.get(static_cast<int>(i)).detach()});
  model::test::write_stored(directory / "model.safetensors", stored);
  std::filesystem::copy_file(tokenizer, directory / "tokenizer.json");
  return directory;
}

/// The toy tokenizer with its words' ids in reverse, so that a caption's ids are others.
inline std::filesystem::path write_reversed_tokenizer(const std::filesystem::path& toy,
                                                      const std::filesystem::path& path) {
  Json json = read_json_file(toy);
  constexpr int64_t kFirstWord = 7, kLastWord = 17;
  for (auto& [word, id] : json["model"]["vocab"].items()) {
    const int64_t old = id;
    if (old >= kFirstWord) id = kFirstWord + kLastWord - old;
  }
  write_file_atomic(path, json.dump());
  return path;
}

}  // namespace mm::run::test
