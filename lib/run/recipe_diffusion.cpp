#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

void check_heads(ConfigTable& t, int64_t hidden, int64_t heads) {
  if (hidden % heads != 0)
    t.fail("heads", fmt::format("{} heads do not divide hidden = {}", heads, hidden));
}

ModelRecipe::Transformer read_transformer(ConfigTable t) {
  ModelRecipe::Transformer x;
  x.hidden = t.get_int(
      "hidden", {.def = x.hidden, .min = 4, .max = 65536, .doc = "width of the transformer"});
  x.layers =
      t.get_int("layers", {.def = x.layers, .min = 1, .max = 1024, .doc = "transformer blocks"});
  x.heads = t.get_int("heads", {.def = x.heads, .min = 1, .max = 1024, .doc = "attention heads"});
  x.patch = t.get_int(
      "patch",
      {.def = x.patch, .min = 1, .max = 1024, .doc = "side of a patch, in pixels or latents"});
  x.grid_side = t.get_int(
      "grid_side", {.def = x.grid_side,
                    .min = 1,
                    .max = 4096,
                    .doc = "patches along the side of the picture that positions are made for; "
                           "others are scaled to it (pixart) or cut from its middle (sd3)"});
  x.qk_norm =
      t.get_bool("qk_norm", {.def = false, .doc = "sd3: RMSNorm of queries and keys (SD3.5)"});
  x.time_divisor = t.get_int(
      "time_divisor",
      {.def = x.time_divisor,
       .min = 127,
       .max = 128,
       .doc = "frequency i of the time embedding is 10000^(-i / time_divisor): 127 or 128"});
  check_heads(t, x.hidden, x.heads);
  if (x.hidden % 4 != 0)
    t.fail("hidden",
           fmt::format("{} is no multiple of 4; positions in two dimensions need one", x.hidden));
  return x;
}

ModelRecipe::TextEncoder read_text_encoder(ConfigTable t) {
  ModelRecipe::TextEncoder e;
  e.hidden = t.get_int(
      "hidden", {.def = e.hidden, .min = 1, .max = 65536, .doc = "width of the text encoder"});
  e.layers = t.get_int("layers", {.def = e.layers, .min = 0, .max = 1024, .doc = "its layers"});
  e.heads = t.get_int("heads", {.def = e.heads, .min = 1, .max = 1024, .doc = "attention heads"});
  e.max_tokens = t.get_int(
      "max_tokens",
      {.def = e.max_tokens, .min = 1, .max = 4096, .doc = "tokens of a caption; more are cut off"});
  check_heads(t, e.hidden, e.heads);
  return e;
}

}  // namespace

void read_diffusion_sizes(ConfigTable t, ModelRecipe& model) {
  for (const char* key : {"vision", "language"}) {
    if (t.table(key).present())
      t.fail(key, fmt::format("family {} has no such part; its sizes stand in [model.transformer]",
                              model.family));
  }
  model.transformer = read_transformer(t.table("transformer"));
  model.text_encoder = read_text_encoder(t.table("text_encoder"));
}

DiffusionRecipe read_diffusion(ConfigTable t) {
  DiffusionRecipe d;
  d.predict = t.get_enum(
      "predict",
      {.words = {"epsilon", "v", "flow"},
       .def = d.predict,
       .doc = "what the model gives: the noise; sqrt(abar) noise - sqrt(1 - abar) x0; or "
              "noise - x0 of x = (1 - s) x0 + s noise, s = 1 all noise"});
  d.noise_schedule =
      t.get_enum("noise_schedule", {.words = {"linear", "scaled_linear", "cosine"},
                                    .def = d.noise_schedule,
                                    .doc = "betas of epsilon and v (1e-4 to 0.02; squares from "
                                           "0.00085 to 0.012; cosine)"});
  d.time_steps =
      t.get_int("time_steps", {.def = 1000, .min = 2, .max = 1 << 20, .doc = "of the schedule"});
  d.learned_sigma = t.get_bool(
      "learned_sigma", {.def = false,
                        .doc = "epsilon: a second half of output channels gives the variance, "
                               "learned by the variational bound; the noise's half is detached"});
  d.min_snr_gamma = t.get_double("min_snr_gamma",
                                 {.def = 0.0,
                                  .min = 0,
                                  .max = 1e6,
                                  .doc = "limit of the loss weight by SNR (5 is usual), 0: none"});
  d.time_draw = t.get_enum("time_draw", {.words = {"uniform", "logit_normal", "mode", "cosmap"},
                                         .def = d.predict == "flow" ? "logit_normal" : "uniform",
                                         .doc = "density of the times that are trained; flow"});
  d.loss_weight =
      t.get_enum("loss_weight", {.words = {"none", "sigma_sqrt", "cosmap"},
                                 .def = "none",
                                 .doc = "flow: weight of a picture's loss by its time"});
  d.shift = t.get_double(
      "shift", {.def = 1.0,
                .min = 0.01,
                .max = 100,
                .doc = "flow: s becomes shift s / (1 + (shift - 1) s), trained and sampled alike"});
  d.label_drop = t.get_double(
      "label_drop", {.def = 0.1,
                     .min = 0,
                     .max = 1,
                     .doc = "share of pictures trained without their label or caption: what "
                            "guidance needs"});
  d.encoder_drop = t.get_double_list(
      "encoder_drop",
      {.def = d.encoder_drop,
       .min = 0,
       .max = 1,
       .max_count = 3,
       .doc = "chance that a text model's share of a caption is left out by itself, zeros in its "
              "place (its rows or columns and its pooled vector; SD3: 0.464 of each): one number "
              "for all text models, or one each; a caption without any share counts as left out; "
              "beside label_drop"});
  d.normalisation = t.get_enum(
      "normalisation", {.words = {"sample", "element"},
                        .def = "sample",
                        .doc = "each picture's loss weighs the same, or each of its elements"});
  if (d.learned_sigma && d.predict != "epsilon")
    t.fail("learned_sigma", "only predict = \"epsilon\" has a bound to learn a variance by");
  return d;
}

EmaRecipe read_ema(ConfigTable t) {
  EmaRecipe e;
  e.decay = t.get_double(
      "decay",
      {.def = 0.0,
       .min = 0,
       .max = 0.9999999,
       .doc = "of the average of the weights in fp32, after each step (0.9999 is usual), 0: none"});
  e.warmup = t.get_enum(
      "warmup", {.words = {"none", "ratio", "power"},
                 .def = "none",
                 .doc = "ratio: the decay of step n is min(decay, (1 + n) / (10 + n)); power: "
                        "min(decay, 1 - (1 + n)^-power)"});
  e.power =
      t.get_double("power", {.def = 2.0 / 3, .min = 0.01, .max = 10, .doc = "of warmup power"});
  return e;
}

}  // namespace mm::run::detail
