#include "lib/ckpt/caption_encoder_export.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "lib/base/error.h"
#include "lib/ckpt/hf_writer.h"

namespace mm::ckpt {
namespace {

constexpr std::string_view kPrefix = "text_encoder.", kLayers = "layers.";

struct Renamed {
  std::string_view ours, published;
};
constexpr std::array<Renamed, 3> kWhole{{{"embed_tokens.", "embeddings.word_embeddings."},
                                         {"position_embedding.", "embeddings.position_embeddings."},
                                         {"final_layer_norm.", "encoder.ln."}}};
constexpr std::array<Renamed, 8> kOfLayer{{{"layer_norm1.", "attention.ln."},
                                           {"self_attn.q_proj.", "attention.self.query."},
                                           {"self_attn.k_proj.", "attention.self.key."},
                                           {"self_attn.v_proj.", "attention.self.value."},
                                           {"self_attn.out_proj.", "attention.output.dense."},
                                           {"layer_norm2.", "ln."},
                                           {"mlp.fc1.", "intermediate.dense."},
                                           {"mlp.fc2.", "output.dense."}}};

/// Empty for a name without a place.
std::string published_name(std::string_view name) {
  const auto renamed = [](std::string_view rest, const auto& table, const std::string& before) {
    for (const Renamed& one : table) {
      if (rest.starts_with(one.ours))
        return before + std::string(one.published) + std::string(rest.substr(one.ours.size()));
    }
    return std::string();
  };
  if (!name.starts_with(kLayers)) return renamed(name, kWhole, "");
  name.remove_prefix(kLayers.size());
  const size_t dot = std::min(name.find('.'), name.size() - 1);
  return renamed(name.substr(dot + 1), kOfLayer,
                 "encoder.layer." + std::string(name.substr(0, dot + 1)));
}

/// 0 where there is none.
int64_t number(const Json& text, const char* key) {
  const Json value = text.is_object() ? text.value(key, Json()) : Json();
  return value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX ? value.get<int64_t>()
                                                                          : 0;
}

Json config_of(const Json& text, const TensorSource& positions) {
  const int64_t width = number(text, "hidden_size");
  return {{"architectures", {"MegatronBertModel"}},
          {"model_type", "megatron-bert"},
          {"vocab_size", number(text, "vocab_size")},
          {"hidden_size", width},
          {"num_hidden_layers", number(text, "num_hidden_layers")},
          {"num_attention_heads", number(text, "num_attention_heads")},
          {"intermediate_size", 4 * width},
          {"hidden_act", "gelu_pytorch_tanh"},
          {"max_position_embeddings", positions.shape.at(0)},
          {"type_vocab_size", 1},
          {"layer_norm_eps", 1e-5},
          {"hidden_dropout_prob", 0.0},
          {"attention_probs_dropout_prob", 0.0},
          {"dtype", torch_dtype_name(positions.dtype)}};
}

TensorSource zeros_like_row(const TensorSource& positions) {
  TensorSource zeros{.name = "embeddings.token_type_embeddings.weight",
                     .dtype = positions.dtype,
                     .shape = {1, positions.shape.at(1)}};
  zeros.stream = [count = tensor_bytes(zeros)](const ByteSink& sink) {
    sink(std::vector<std::byte>(count));
  };
  return zeros;
}

}  // namespace

std::optional<WeightSource> caption_encoder_of(const WeightSource& source) {
  const Json text =
      source.config.is_object() ? source.config.value("caption_encoder", Json()) : Json();
  if (number(text, "vocab_size") == 0) return std::nullopt;
  WeightSource out{.side_files = source.side_files, .open_files = source.open_files};
  const TensorSource* positions = nullptr;
  for (const TensorSource& tensor : source.tensors) {
    if (!tensor.name.starts_with(kPrefix)) continue;
    const std::string name = published_name(std::string_view(tensor.name).substr(kPrefix.size()));
    if (name.empty()) continue;
    out.tensors.push_back(tensor);
    out.tensors.back().name = name;
    if (name == "embeddings.position_embeddings.weight") positions = &tensor;
  }
  if (positions == nullptr || positions->shape.size() != 2)
    throw DataError("a caption_encoder in config.json, and no text_encoder.position_embedding");
  out.tensors.push_back(zeros_like_row(*positions));
  std::ranges::sort(out.tensors, {}, &TensorSource::name);
  out.config = config_of(text, *positions);
  return out;
}

}  // namespace mm::ckpt
