#include "lib/base/error.h"
#include "lib/run/hf_pictures.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

void read_from(ConfigTable& t, ModelRecipe& model) {
  const auto from = t.find_path(
      "from", {.must_exist = true,
               .doc = "Hugging Face directory (LLaVA, LLaVA-NeXT, OneVision, Qwen2.5-VL; a "
                      "diffusers transformer or autoencoder) to start from; its config.json then "
                      "gives all sizes"});
  if (!from) return;
  model.from = *from;
  for (const char* key : {"vision", "language", "transformer", "text_encoder", "autoencoder"}) {
    if (t.table(key).present()) t.fail(key, "sizes come from model.from; leave this table out");
  }
  if (model.bucketed()) return;
  try {
    if (const auto norm = read_hf_norm(model.from))
      model.from_normalise = {.mean = norm->mean, .std = norm->std};
  } catch (const Error&) {
    // With both stated, the directory's serve a warning only.
    if (!t.has("image_mean") || !t.has("image_std")) throw;
  }
}

void read_normalise(ConfigTable& t, ModelRecipe& model) {
  ModelRecipe::Normalise n = model.from_normalise.value_or(ModelRecipe::Normalise{});
  // Diffusion models see [-1, 1].
  if (model.bucketed()) n = {.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}};
  model.normalise_stated = t.has("image_mean") || t.has("image_std");
  n.mean = t.get_double_list(
      "image_mean", {.def = n.mean,
                     .min = -10,
                     .max = 10,
                     .min_count = 3,
                     .max_count = 3,
                     .doc = "subtracted from byte / 255, per channel; default: as "
                            "preprocessor_config.json of model.from says, else CLIP's, 0.5 for "
                            "diffusion"});
  n.std = t.get_double_list(
      "image_std", {.def = n.std,
                    .min = 1e-6,
                    .max = 10,
                    .min_count = 3,
                    .max_count = 3,
                    .doc = "then divides, per channel; default: as preprocessor_config.json of "
                           "model.from says, else CLIP's"});
  model.normalise = n;
}

void read_vocabulary(ConfigTable& t, ModelRecipe& model) {
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
  if (model.bucketed())
    t.refuse_unused({"vocab_rows", "vocab_multiple"},
                    "in family " + model.family + ", which has no such tables; leave it out");
}

/// What is drawn: all of a model from scratch, the projector of a directory without one.
void read_drawn(ConfigTable& t, ModelRecipe& model) {
  EnumOption projector{.words = {"mlp2x_gelu", "linear"},
                       .doc =
                           "layers between tower and decoder: two linear ones with GELU between "
                           "them, or one; default: as config.json of model.from says, else "
                           "mlp2x_gelu. Another one than there is for a directory without "
                           "projector only; qwen2_5_vl has a merger of its own"};
  if (model.from.empty()) projector.def = "mlp2x_gelu";
  if (model.family != "qwen2_5_vl")
    model.projector = t.find_enum("projector", projector).value_or("");
  model.init = t.get_enum(
      "init", {.words = {"normal", "fan_in"},
               .def = "normal",
               .doc = "spread of initial matrices: normal: init_std; fan_in: 1 / sqrt(inputs), "
                      "residual outputs divided by sqrt(2 x layers), tables init_std; with "
                      "model.from of a projector that the directory lacks"});
  model.init_std = t.get_double(
      "init_std",
      {.def = 0.02, .min = 0, .max = 10, .doc = "standard deviation of initial weights"});
}

}  // namespace

ModelRecipe read_model(ConfigTable t) {
  ModelRecipe model;
  model.family =
      t.get_enum("family", {.words = {"llava", "llava_next", "llava_onevision", "qwen2_5_vl", "dit",
                                      "pixart", "sd3", "vae"},
                            .def = "llava",
                            .doc = "model family; with from, config.json must say the same, but "
                                   "llava_next may start from a llava directory: its pictures then "
                                   "have tiles in LLaVA 1.6's grids"});
  read_from(t, model);
  read_normalise(t, model);
  read_vocabulary(t, model);
  if (model.diffusion()) read_frozen_encoders(t, model);
  if (!model.bucketed()) read_drawn(t, model);
  if (!model.from.empty()) return model;
  if (model.diffusion()) {
    read_diffusion_sizes(t, model);
  } else if (model.family == "vae") {
    model.autoencoder = read_autoencoder(t.table("autoencoder"));
  } else {
    model.vision = read_vision(t.table("vision"), model.family);
    model.language = read_language(t.table("language"), model.family);
  }
  return model;
}

}  // namespace mm::run::detail
