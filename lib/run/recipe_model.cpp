#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

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
  model.family =
      t.get_enum("family", {.words = {"llava", "llava_next", "llava_onevision", "qwen2_5_vl", "dit",
                                      "pixart", "sd3", "vae"},
                            .def = "llava",
                            .doc = "model family; with from, config.json must say the same"});
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
  model.init = t.get_enum(
      "init", {.words = {"normal", "fan_in"},
               .def = "normal",
               .doc = "spread of initial matrices: normal: init_std; fan_in: 1 / sqrt(inputs), "
                      "residual outputs divided by sqrt(2 x layers), tables init_std"});
  model.init_std = t.get_double(
      "init_std",
      {.def = 0.02, .min = 0, .max = 10, .doc = "standard deviation of initial weights"});
  model.vision = read_vision(t.table("vision"), model.family);
  model.language = read_language(t.table("language"), model.family);
  return model;
}

}  // namespace mm::run::detail
