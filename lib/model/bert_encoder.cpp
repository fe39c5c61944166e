#include "lib/model/bert_encoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/model/masked_attention.h"
#include "lib/model/text_layers.h"

namespace mm::model {
namespace {

struct BertConfig {
  int64_t vocab = 30522, hidden = 768, inner = 3072, layers = 12, heads = 12, length = 512,
          types = 2;
  double eps = 1e-12;
};

struct Layer {
  Linear q, k, v, out, fc1, fc2;
  TextNorm norm1, norm2;
  int64_t heads = 1;
};

BertConfig read(const Section& s) {
  BertConfig c;
  s.require("hidden_act", "gelu", "gelu");
  s.require("position_embedding_type", "absolute", "absolute");
  c.vocab = s.integer("vocab_size", c.vocab);
  c.hidden = s.integer("hidden_size", c.hidden);
  c.inner = s.integer("intermediate_size", c.inner);
  c.layers = s.layers("num_hidden_layers", c.layers);
  c.heads = s.integer("num_attention_heads", c.heads);
  c.length = s.integer("max_position_embeddings", c.length);
  c.types = s.integer("type_vocab_size", c.types);
  c.eps = s.positive("layer_norm_eps", c.eps);
  require_heads(s, c.hidden, c.heads);
  return c;
}

at::Tensor run(const Layer& l, const ParamView& params, const PaddedText& text,
               const at::Tensor& x) {
  const auto split = [&](const Linear& projection) {
    return split_heads(apply(projection, params, x), l.heads);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(x.size(2) / l.heads));
  const at::Tensor mixed =
      padded_attention(split(l.q), split(l.k), split(l.v), {.mask = text.mask, .scale = scale});
  const at::Tensor h = apply(l.norm1, params, x + apply(l.out, params, mixed));
  const at::Tensor inner = at::gelu(apply(l.fc1, params, h));
  return apply(l.norm2, params, h + apply(l.fc2, params, inner));
}

TextStage layer_stage(const DeclareParams& parent, const BertConfig& c, int64_t number) {
  const DeclareParams declare = parent.below("encoder.layer." + std::to_string(number) + ".");
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) {
    return declare.linear(name, out, in, LinearInit::kSmallNormal);
  };
  Layer l{.heads = c.heads};
  l.q = linear("attention.self.query", c.hidden, c.hidden);
  l.k = linear("attention.self.key", c.hidden, c.hidden);
  l.v = linear("attention.self.value", c.hidden, c.hidden);
  l.out = linear("attention.output.dense", c.hidden, c.hidden);
  l.norm1 = declare_text_norm(declare, "attention.output.LayerNorm", c.hidden, c.eps);
  l.fc1 = linear("intermediate.dense", c.inner, c.hidden);
  l.fc2 = linear("output.dense", c.hidden, c.inner);
  l.norm2 = declare_text_norm(declare, "output.LayerNorm", c.hidden, c.eps);
  TextStage stage = text_layer_stage(number, c.hidden, c.inner);
  append_params(stage.params, l.norm1);
  append_params(stage.params, l.norm2);
  for (const Linear* linear : {&l.q, &l.k, &l.v, &l.out, &l.fc1, &l.fc2})
    append_params(stage.params, *linear);
  stage.forward = [l](const ParamView& params, const PaddedText& text, const at::Tensor& x) {
    return run(l, params, text, x);
  };
  return stage;
}

TextStage embedding_stage(const DeclareParams& parent, const BertConfig& c) {
  const DeclareParams declare = parent.below("embeddings.");
  const auto table = [&](const char* name, int64_t rows) {
    return declare.tensor(std::string(name) + ".weight", {rows, c.hidden}, Init::kNormal);
  };
  const ParamId words = table("word_embeddings", c.vocab),
                positions = table("position_embeddings", c.length),
                types = table("token_type_embeddings", c.types);
  const TextNorm norm = declare_text_norm(declare, "LayerNorm", c.hidden, c.eps);
  TextStage stage{.name = "text.embeddings", .params = {words, positions, types}};
  append_params(stage.params, norm);
  stage.forward = [=](const ParamView& params, const PaddedText& text, const at::Tensor&) {
    const at::Tensor place =
        params.get(positions).narrow(0, 0, text.ids.size(1)) + params.get(types).select(0, 0);
    return apply(norm, params, at::embedding(params.get(words), text.ids) + place);
  };
  return stage;
}

}  // namespace

TextEncoder declare_bert_encoder(Model& model, const Section& config, const std::string& prefix,
                                 bool has_pooler) {
  const BertConfig c = read(config);
  const DeclareParams declare(model, Part::kTextEncoder, prefix);
  TextEncoder encoder{.family = TextFamily::kBert,
                      .width = c.hidden,
                      .pooled_width = c.hidden,
                      .vocab = c.vocab,
                      .max_length = c.length,
                      .pad_id = config.integer("pad_token_id", 0, 0)};
  encoder.layers.push_back(embedding_stage(declare, c));
  for (int64_t i = 0; i < c.layers; ++i) encoder.layers.push_back(layer_stage(declare, c, i));
  if (has_pooler) declare.linear("pooler.dense", c.hidden, c.hidden, LinearInit::kSmallNormal);
  encoder.final_norm = {.name = "text.norm"};
  encoder.final_norm.forward = [](const ParamView&, const PaddedText&, const at::Tensor& x) {
    return x;
  };
  encoder.pool = {.name = "text.pool"};
  encoder.pool.forward = [](const ParamView&, const PaddedText& text, const at::Tensor& hidden) {
    return mean_of_tokens(hidden, text.mask);
  };
  return encoder;
}

}  // namespace mm::model
