#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

void check_heads(ConfigTable& t, int64_t hidden, int64_t heads) {
  if (hidden % heads != 0)
    t.fail("heads", fmt::format("{} heads do not divide hidden = {}", heads, hidden));
}

/// What some published models of a family have and others have not.
void read_variants(ConfigTable& t, const std::string& family, ModelRecipe::Transformer& x) {
  x.position_scale = t.get_double(
      "position_scale",
      {.def = x.position_scale,
       .min = 0.01,
       .max = 100,
       .doc = "coordinates of patches are divided by it (diffusers' interpolation_scale; "
              "PixArt-alpha: 1 at 512 pixels, 2 at 1024)"});
  x.size_embedders = t.get_bool(
      "size_embedders", {.def = x.size_embedders,
                         .doc = "pixart: resolution and aspect ratio are embedded beside the time "
                                "(PixArt-alpha at 1024 pixels); hidden is a multiple of 3 then"});
  if (x.size_embedders && (family != "pixart" || x.hidden % 3 != 0))
    t.fail("size_embedders", family != "pixart"
                                 ? "only pixart has them; leave it out"
                                 : "they divide hidden by 3; make it a multiple of 12");
  x.dual_layers = t.get_int_list(
      "dual_layers", {.def = x.dual_layers,
                      .min = 0,
                      .max = 1023,
                      .max_count = 1024,
                      .doc = "sd3: blocks, from 0, with a second attention over the picture alone "
                             "(SD3.5 medium: 0 to 12)"});
  if (!x.dual_layers.empty() && family != "sd3")
    t.fail("dual_layers", "only sd3 has such blocks; leave it out");
  for (const int64_t block : x.dual_layers) {
    if (block >= x.layers)
      t.fail("dual_layers", fmt::format("block {} of {}, counted from 0", block, x.layers));
  }
}

ModelRecipe::Transformer read_transformer(ConfigTable t, const std::string& family) {
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
       .doc = "frequency i of the time embedding is 10000^(-i / time_divisor): 127 or 128 "
              "(diffusers' DiT knows 127 alone, its PixArt and SD3 128)"});
  read_variants(t, family, x);
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

/// Keys of the times that flows are trained at, besides time_draw and shift.
void read_flow_times(ConfigTable& t, DiffusionRecipe& d) {
  d.shift_patches = t.get_double(
      "shift_patches",
      {.def = 0.0,
       .min = 0,
       .max = 1e9,
       .doc = "flow: patches of the picture that shift is of; one of n patches has shift times "
              "sqrt(n / shift_patches), trained and sampled alike; 0: all sizes have shift"});
  d.time_mean = t.get_double("time_mean", {.def = d.time_mean,
                                           .min = -100,
                                           .max = 100,
                                           .doc = "logit_normal: mean of the normal draw"});
  d.time_deviation = t.get_double(
      "time_deviation",
      {.def = d.time_deviation, .min = 1e-3, .max = 100, .doc = "logit_normal: its deviation"});
  d.time_mode_scale =
      t.get_double("time_mode_scale", {.def = d.time_mode_scale,
                                       .min = -1,
                                       .max = 1.75,
                                       .doc = "mode: more than 0 trains middle times more often"});
  d.time_table = t.get_bool("time_table",
                            {.def = false,
                             .doc = "flow: times are drawn from a table of time_steps entries, as "
                                    "diffusers' training scripts do, not from all of [0, 1]"});
  const DiffusionRecipe usual;
  if (d.predict != "flow" && d.shift_patches > 0)
    t.fail("shift_patches", "only predict = \"flow\" has a shift; leave it out");
  if (d.predict != "flow" && d.time_table)
    t.fail("time_table", "epsilon and v always draw from their table; leave it out");
  if (d.time_draw != "logit_normal" &&
      (d.time_mean != usual.time_mean || d.time_deviation != usual.time_deviation))
    t.fail(d.time_mean != usual.time_mean ? "time_mean" : "time_deviation",
           "only time_draw = \"logit_normal\" has them; leave it out");
  if (d.time_draw != "mode" && d.time_mode_scale != usual.time_mode_scale)
    t.fail("time_mode_scale", "only time_draw = \"mode\" has one; leave it out");
}

}  // namespace

void read_diffusion_sizes(ConfigTable t, ModelRecipe& model) {
  for (const char* key : {"vision", "language"}) {
    if (t.table(key).present())
      t.fail(key, fmt::format("family {} has no such part; its sizes stand in [model.transformer]",
                              model.family));
  }
  model.transformer = read_transformer(t.table("transformer"), model.family);
  model.text_encoder = read_text_encoder(t.table("text_encoder"));
}

/// What is trained without its condition, or without a part of it.
static void read_drops(ConfigTable& t, DiffusionRecipe& d) {
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
}

/// Keys of one objective in a recipe of another.
static void refuse_other_objectives(ConfigTable& t, const DiffusionRecipe& d) {
  const bool flow = d.predict == "flow";
  if (d.learned_sigma && d.predict != "epsilon")
    t.fail("learned_sigma", "only predict = \"epsilon\" has a bound to learn a variance by");
  if (flow && d.min_snr_gamma > 0)
    t.fail("min_snr_gamma",
           "only epsilon and v have a limit of the SNR; leave it out (loss_weight is a flow's)");
  if (flow)
    return t.refuse_unused({"noise_schedule"},
                           "with predict = \"flow\", which has no betas; leave it out");
  t.refuse_unused({"time_draw", "loss_weight", "shift"},
                  "with predict = \"" + d.predict + "\", it is a flow's; leave it out");
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
  d.loss_weight = t.get_enum("loss_weight",
                             {.words = {"none", "sigma_sqrt", "cosmap"},
                              .def = "none",
                              .doc = "flow: weight of a picture's loss by its time: 1, s^-2 (of "
                                     "s below 1 / time_steps that of 1 / time_steps), or 2 / (pi "
                                     "(1 - 2 s + 2 s^2))"});
  d.shift = t.get_double(
      "shift", {.def = 1.0,
                .min = 0.01,
                .max = 100,
                .doc = "flow: s becomes shift s / (1 + (shift - 1) s), trained and sampled alike"});
  read_flow_times(t, d);
  read_drops(t, d);
  d.normalisation = t.get_enum(
      "normalisation", {.words = {"sample", "element"},
                        .def = "sample",
                        .doc = "each picture's loss weighs the same, or each of its elements"});
  refuse_other_objectives(t, d);
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
