#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

ModelRecipe::Vision read_vision(ConfigTable t) {
  ModelRecipe::Vision v;
  v.hidden =
      t.get_int("hidden", {.def = 128, .min = 1, .max = 65536, .doc = "width of the vision tower"});
  v.layers =
      t.get_int("layers", {.def = 4,
                           .min = 1,
                           .max = 1024,
                           .doc = "layers of the tower, those after the feature layer included"});
  v.heads = t.get_int("heads", {.def = 4, .min = 1, .max = 1024, .doc = "attention heads"});
  v.mlp = t.get_int("mlp", {.def = 4 * v.hidden,
                            .min = 1,
                            .max = 1 << 20,
                            .doc = "width of the feed-forward layer (default: 4 x hidden)"});
  v.patch = t.get_int("patch", {.def = 8, .min = 1, .max = 1024, .doc = "side of a patch, pixels"});
  v.image_side =
      t.get_int("image_side", {.def = 64,
                               .min = 1,
                               .max = 16384,
                               .doc = "side of the picture, pixels; as the data set was packed"});
  v.feature_layer = t.get_int(
      "feature_layer", {.def = -2,
                        .min = -1024,
                        .max = 1024,
                        .doc = "hidden state that the projector reads, -1: the last layer's"});
  if (v.hidden % v.heads != 0)
    t.fail("heads", fmt::format("{} heads do not divide hidden = {}", v.heads, v.hidden));
  if (v.patch > v.image_side)
    t.fail("patch", fmt::format("{} pixels are more than image_side = {}", v.patch, v.image_side));
  const int64_t states = v.layers + 1;  // embeddings, then one a layer
  if (v.feature_layer >= states || v.feature_layer < -states || v.feature_layer == 0) {
    t.fail("feature_layer",
           fmt::format("{} is not one of the {} hidden states; expected -{}..-1 or 1..{}",
                       v.feature_layer, states, states - 1, v.layers));
  }
  return v;
}

ModelRecipe::Language read_language(ConfigTable t) {
  ModelRecipe::Language l;
  l.hidden =
      t.get_int("hidden", {.def = 192, .min = 1, .max = 65536, .doc = "width of the decoder"});
  l.layers = t.get_int("layers", {.def = 4, .min = 1, .max = 1024, .doc = "decoder layers"});
  l.heads = t.get_int("heads", {.def = 4, .min = 1, .max = 1024, .doc = "query heads"});
  l.kv_heads = t.get_int(
      "kv_heads",
      {.def = l.heads, .min = 1, .max = 1024, .doc = "key-value heads (default: as heads)"});
  l.mlp = t.get_int("mlp", {.def = 3 * l.hidden,
                            .min = 1,
                            .max = 1 << 20,
                            .doc = "width of the gated feed-forward layer (default: 3 x hidden)"});
  l.rope_theta = t.get_double(
      "rope_theta", {.def = 10000.0, .min = 1, .max = 1e9, .doc = "base of the rotary positions"});
  l.tied_head =
      t.get_bool("tied_head", {.def = false, .doc = "the output head is the embedding table"});
  if (l.hidden % l.heads != 0)
    t.fail("heads", fmt::format("{} heads do not divide hidden = {}", l.heads, l.hidden));
  if (l.hidden / l.heads % 2 != 0)
    t.fail("heads",
           fmt::format("head size {} is odd; rotary positions need pairs", l.hidden / l.heads));
  if (l.heads % l.kv_heads != 0)
    t.fail("kv_heads",
           fmt::format("{} key-value heads do not divide {} query heads", l.kv_heads, l.heads));
  return l;
}

ModelRecipe::Normalise read_normalise(ConfigTable t, ModelRecipe::Normalise n) {
  n.mean = t.get_double_list("image_mean",
                             {.def = n.mean,
                              .min = -10,
                              .max = 10,
                              .min_count = 3,
                              .max_count = 3,
                              .doc = "subtracted from byte / 255, per channel; default: CLIP's, "
                                     "0.5 for diffusion"});
  n.std = t.get_double_list("image_std", {.def = n.std,
                                          .min = 1e-6,
                                          .max = 10,
                                          .min_count = 3,
                                          .max_count = 3,
                                          .doc = "then divides, per channel; default: CLIP's"});
  return n;
}

}  // namespace

ModelRecipe read_model(ConfigTable t) {
  ModelRecipe model;
  model.family = t.get_enum(
      "family",
      {.words = {"llava", "llava_next", "llava_onevision", "qwen2_5_vl", "dit", "pixart", "sd3",
                 "vae"},
       .def = "llava",
       .doc = "model family; llava_next, llava_onevision, qwen2_5_vl only with from, whose "
              "config.json must say the same"});
  // Diffusion models see [-1, 1].
  if (model.bucketed()) model.normalise = {.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}};
  model.normalise = read_normalise(t, model.normalise);
  model.vocab_rows = t.get_int(
      "vocab_rows", {.def = 0,
                     .min = 0,
                     .max = 1 << 26,
                     .doc = "rows of the embedding table and the head at least; new rows start as "
                            "the mean of the old ones. 0: as many as the tokenizer has ids, and no "
                            "new rows for model.from"});
  model.vocab_multiple = t.get_int(
      "vocab_multiple",
      {.def = 1,
       .min = 1,
       .max = 1 << 16,
       .doc = "rows are filled up to a multiple of this; mmckpt convert cuts the filling off"});
  if (model.diffusion()) read_frozen_encoders(t, model);
  if (const auto from = t.find_path("from", {.must_exist = true,
                                             .doc = "Hugging Face directory (LLaVA, LLaVA-NeXT, "
                                                    "OneVision, Qwen2.5-VL; a diffusers "
                                                    "transformer or autoencoder) to start from; "
                                                    "its config.json then gives all sizes"})) {
    model.from = *from;
    for (const char* key : {"vision", "language", "transformer", "text_encoder", "autoencoder"}) {
      if (t.table(key).present()) t.fail(key, "sizes come from model.from; leave this table out");
    }
    return model;
  }
  if (model.diffusion()) {
    read_diffusion_sizes(t, model);
    return model;
  }
  if (model.family == "vae") {
    model.autoencoder = read_autoencoder(t.table("autoencoder"));
    return model;
  }
  if (model.family != "llava")
    t.fail("family", fmt::format("{} starts from a Hugging Face directory only; give model.from",
                                 model.family));
  model.init = t.get_enum(
      "init", {.words = {"normal", "fan_in"},
               .def = "normal",
               .doc = "spread of initial matrices: normal: init_std; fan_in: 1 / sqrt(inputs), "
                      "residual outputs divided by sqrt(2 x layers), tables init_std"});
  model.init_std = t.get_double(
      "init_std",
      {.def = 0.02, .min = 0, .max = 10, .doc = "standard deviation of initial weights"});
  model.vision = read_vision(t.table("vision"));
  model.language = read_language(t.table("language"));
  return model;
}

}  // namespace mm::run::detail
