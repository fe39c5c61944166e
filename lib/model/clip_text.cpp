#include "lib/model/clip_text.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/activations.h"
#include "lib/model/masked_attention.h"
#include "lib/model/text_layers.h"

namespace mm::model {
namespace {

constexpr int64_t kOldEndOfText = 2;

struct ClipConfig {
  int64_t vocab = 49408, hidden = 512, intermediate = 2048, layers = 12, heads = 8, length = 77;
  int64_t projection = 0;  ///< 0: none
  int64_t end_of_text = 49407;
  double eps = 1e-5;
  bool quick = true;
};

struct Layer {
  TextNorm norm1, norm2;
  Linear q, k, v, out, fc1, fc2;
  int64_t heads = 1;
  bool quick = true;
};

ClipConfig read(const Section& s) {
  ClipConfig c;
  c.vocab = s.integer("vocab_size", c.vocab);
  c.hidden = s.integer("hidden_size", c.hidden);
  c.intermediate = s.integer("intermediate_size", c.intermediate);
  c.layers = s.layers("num_hidden_layers", c.layers);
  c.heads = s.integer("num_attention_heads", c.heads);
  c.length = s.integer("max_position_embeddings", c.length);
  c.end_of_text = s.integer("eos_token_id", c.end_of_text, 0);
  c.eps = s.positive("layer_norm_eps", c.eps);
  require_heads(s, c.hidden, c.heads);
  const std::string act = s.word("hidden_act", "quick_gelu");
  if (act != "quick_gelu" && act != "gelu")
    throw DataError("{}.hidden_act is \"{}\"; only quick_gelu and gelu are supported", s.where,
                    act);
  c.quick = act == "quick_gelu";
  if (names_architecture(s, "CLIPTextModelWithProjection"))
    c.projection = s.integer("projection_dim", 512);
  return c;
}

at::Tensor attend(const Layer& l, const ParamView& params, const at::Tensor& x) {
  const auto split = [&](const Linear& projection) {
    return split_heads(apply(projection, params, x), l.heads);
  };
  return apply(l.out, params, causal_rows(split(l.q), split(l.k), split(l.v)));
}

at::Tensor run(const Layer& l, const ParamView& params, const at::Tensor& x) {
  const at::Tensor h = x + attend(l, params, apply(l.norm1, params, x));
  const at::Tensor inner = apply(l.fc1, params, apply(l.norm2, params, h));
  return h + apply(l.fc2, params, l.quick ? quick_gelu(inner) : at::gelu(inner));
}

TextStage layer_stage(const DeclareParams& parent, const ClipConfig& c, int64_t number) {
  const DeclareParams declare = parent.below("encoder.layers." + std::to_string(number) + ".");
  Layer l{.heads = c.heads, .quick = c.quick};
  l.norm1 = declare_text_norm(declare, "layer_norm1", c.hidden, c.eps);
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) {
    return declare.linear(name, out, in, LinearInit::kSmallNormal);
  };
  l.q = linear("self_attn.q_proj", c.hidden, c.hidden);
  l.k = linear("self_attn.k_proj", c.hidden, c.hidden);
  l.v = linear("self_attn.v_proj", c.hidden, c.hidden);
  l.out = linear("self_attn.out_proj", c.hidden, c.hidden);
  l.norm2 = declare_text_norm(declare, "layer_norm2", c.hidden, c.eps);
  l.fc1 = linear("mlp.fc1", c.intermediate, c.hidden);
  l.fc2 = linear("mlp.fc2", c.hidden, c.intermediate);
  TextStage stage = text_layer_stage(number, c.hidden, c.intermediate);
  append_params(stage.params, l.norm1);
  append_params(stage.params, l.norm2);
  for (const Linear* linear : {&l.q, &l.k, &l.v, &l.out, &l.fc1, &l.fc2})
    append_params(stage.params, *linear);
  stage.forward = [l](const ParamView& params, const PaddedText&, const at::Tensor& x) {
    return run(l, params, x);
  };
  return stage;
}

TextStage embedding_stage(const DeclareParams& declare, const ClipConfig& c) {
  const ParamId table =
      declare.tensor("embeddings.token_embedding.weight", {c.vocab, c.hidden}, Init::kNormal);
  const ParamId positions =
      declare.tensor("embeddings.position_embedding.weight", {c.length, c.hidden}, Init::kNormal);
  TextStage stage{.name = "text.embeddings", .params = {table, positions}};
  stage.forward = [table, positions](const ParamView& params, const PaddedText& text,
                                     const at::Tensor&) {
    return at::embedding(params.get(table), text.ids) +
           params.get(positions).narrow(0, 0, text.ids.size(1));
  };
  return stage;
}

/// Row of each caption that stands for the whole: [N].
at::Tensor end_rows(const at::Tensor& ids, int64_t end_of_text) {
  if (end_of_text == kOldEndOfText) return ids.argmax(1);
  return ids.eq(end_of_text).to(at::kInt).argmax(1);
}

TextStage pool_stage(Model& model, const ClipConfig& c, const std::string& prefix) {
  TextStage stage{.name = "text.pool"};
  Linear projection;
  if (c.projection > 0) {
    const DeclareParams declare(model, Part::kTextEncoder, prefix);
    projection.weight =
        declare.tensor("text_projection.weight", {c.projection, c.hidden}, Init::kNormal);
    append_params(stage.params, projection);
  }
  stage.forward = [projection, end = c.end_of_text](const ParamView& params, const PaddedText& text,
                                                    const at::Tensor& hidden) {
    const at::Tensor row = end_rows(text.ids, end).view({-1, 1, 1});
    const at::Tensor taken = hidden.gather(1, row.expand({-1, 1, hidden.size(2)})).squeeze(1);
    return projection.weight < 0 ? taken : apply(projection, params, taken);
  };
  return stage;
}

}  // namespace

TextEncoder declare_clip_text(Model& model, const Section& config, const std::string& prefix) {
  const ClipConfig c = read(config);
  const DeclareParams declare(model, Part::kTextEncoder, prefix + "text_model.");
  TextEncoder encoder{.family = TextFamily::kClip,
                      .width = c.hidden,
                      .pooled_width = c.projection > 0 ? c.projection : c.hidden,
                      .vocab = c.vocab,
                      .max_length = c.length,
                      .pad_id = config.integer("pad_token_id", 1, 0),
                      .pads_seen = true};
  encoder.layers.push_back(embedding_stage(declare, c));
  for (int64_t i = 0; i < c.layers; ++i) encoder.layers.push_back(layer_stage(declare, c, i));
  encoder.final_norm = norm_stage(declare_text_norm(declare, "final_layer_norm", c.hidden, c.eps));
  encoder.pool = pool_stage(model, c, prefix);
  return encoder;
}

}  // namespace mm::model
