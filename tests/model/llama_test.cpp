#include "lib/model/llama.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/model/norms.h"
#include "lib/model/rope.h"
#include "lib/model/steps.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

/// One decoder layer on one sample of `rows` tokens.
struct OneLayer {
  TextConfig config;
  Model model;
  Segment segment;
  Batch batch;
  at::Tensor x;

  OneLayer(const TextConfig& c, int64_t rows) : config(c) {
    const Slot in = model.add_slot("in"), out = model.add_slot("out");
    segment = join("layer", decoder_layer_pieces(model, config, "", 0, in, out));
    batch.cu_seqlens = {0, rows};
    batch.positions = at::arange(rows, at::kLong);
    at::manual_seed(8);
    x = at::randn({rows, config.hidden}, at::kDouble);
  }
  at::Tensor run() const {
    const SimpleParams params = lively_params(model, 3);
    const std::vector<at::Tensor> in{x};
    return segment.forward({params, batch}, in)[0].detach();
  }
  at::Tensor param(const std::string& name) const {
    return lively_params(model, 3).get(find_param(model, "model.layers.0." + name)).detach();
  }
};

// The layer from plain operations: attention by softmax over an explicit mask, key/value heads
// repeated.
at::Tensor by_definition(const OneLayer& l) {
  const TextConfig& c = l.config;
  const int64_t rows = l.x.size(0), share = c.heads / c.kv_heads;
  const at::Tensor n1 = rms_norm_reference(l.x, l.param("input_layernorm.weight"), c.norm_eps);
  const auto heads = [&](const std::string& name, int64_t count) {
    at::Tensor y = at::linear(n1, l.param("self_attn." + name + ".weight"));
    if (c.qkv_bias) y = y + l.param("self_attn." + name + ".bias");
    y = y.view({rows, count, c.head_size});
    const char* norm = name == "q_proj" ? "self_attn.q_norm.weight" : "self_attn.k_norm.weight";
    return c.qk_norm && name != "v_proj" ? rms_norm_reference(y, l.param(norm), c.norm_eps) : y;
  };
  const RopeAngles angles = rope_angles(l.batch.positions, c.head_size, c.rope_theta, true);
  const at::Tensor q = rope_reference(heads("q_proj", c.heads), angles);
  const at::Tensor k =
      rope_reference(heads("k_proj", c.kv_heads), angles).repeat_interleave(share, 1);
  const at::Tensor v = heads("v_proj", c.kv_heads).repeat_interleave(share, 1);
  at::Tensor scores =
      at::einsum("ihd,jhd->hij", {q, k}) / std::sqrt(static_cast<double>(c.head_size));
  scores = scores.masked_fill(at::ones({rows, rows}, at::kBool).triu(1), -INFINITY);
  if (c.sliding_window > 0)
    scores =
        scores.masked_fill(at::ones({rows, rows}, at::kBool).tril(-c.sliding_window), -INFINITY);
  const at::Tensor mixed = at::einsum("hij,jhd->ihd", {at::softmax(scores, -1), v}).flatten(1);
  const at::Tensor h = l.x + at::linear(mixed, l.param("self_attn.o_proj.weight"));
  const at::Tensor n2 =
      rms_norm_reference(h, l.param("post_attention_layernorm.weight"), c.norm_eps);
  const at::Tensor gate = at::linear(n2, l.param("mlp.gate_proj.weight")),
                   up = at::linear(n2, l.param("mlp.up_proj.weight"));
  return h + at::linear(at::silu(gate) * up, l.param("mlp.down_proj.weight"));
}

}  // namespace

TEST_CASE("a decoder layer equals its definition, with grouped and with as many key/value heads") {
  TextConfig config = tiny_config().text;
  for (int64_t kv_heads : {1, 2, 4}) {
    config.kv_heads = kv_heads;
    const OneLayer layer(config, 9);
    CAPTURE(kv_heads);
    CHECK(relative(layer.run(), by_definition(layer)) < 1e-12);
  }
}

TEST_CASE(
    "a decoder layer with biases on q, k and v, and a head size of its own, equals its "
    "definition") {
  TextConfig config = tiny_config().text;
  config.qkv_bias = true;
  config.head_size = 10;
  const OneLayer layer(config, 7);
  CHECK(layer.model.params.size() == 12);
  CHECK(relative(layer.run(), by_definition(layer)) < 1e-12);
}

TEST_CASE(
    "a decoder layer with normalised heads of q and k, and with a window, equals its definition") {
  TextConfig config = tiny_config().text;
  config.qk_norm = true;
  config.sliding_window = 3;
  const OneLayer layer(config, 9);
  CHECK(layer.model.params.size() == 11);
  CHECK(layer.segment.params.size() == 11);
  CHECK(relative(layer.run(), by_definition(layer)) < 1e-12);
}

TEST_CASE(
    "a decoder layer's split dimensions: columns for q, k, v, gate, up; rows for o and down") {
  const OneLayer layer(tiny_config().text, 1);
  for (const ParamSpec& spec : layer.model.params) {
    const bool rows =
        spec.name.ends_with("o_proj.weight") || spec.name.ends_with("down_proj.weight");
    CAPTURE(spec.name);
    CHECK(spec.split_dim == (spec.shape.size() == 1 ? -1 : rows ? 1 : 0));
  }
}
