#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

// Keys around a diffusion transformer: frozen encoders, autoencoders to be trained, grids.
namespace mm::run::detail {

void read_frozen_encoders(ConfigTable t, ModelRecipe& model) {
  if (const auto vae = t.find_path(
          "vae", {.must_exist = true,
                  .doc = "diffusion: directory of a frozen autoencoder whose latents are drawn: it "
                         "encodes pictures on the way, and stages whose latents are stored must "
                         "have its"}))
    model.vae = *vae;
  for (const char* key : {"text_model", "text_model_2", "text_model_3"}) {
    const auto text = t.find_path(
        key, {.must_exist = true,
              .doc = "diffusion: directory of a frozen text encoder (CLIP, T5, BERT) with its "
                     "tokenizer: it encodes captions on the way, and stages whose embeddings are "
                     "stored must have its; several, CLIP before T5, are joined as SD3 does"});
    if (text) model.text_models.push_back(*text);
  }
  if (model.text_models.empty()) return;
  model.text_padding =
      t.get_int("text_padding",
                {.def = model.text_models.size() > 1 ? 77 : 0,
                 .min = 0,
                 .max = 4096,
                 .doc = "diffusion: T5's and BERT's captions are filled up or cut to so many "
                        "tokens, and the filling is read like text (SD3: 77 or 256; 77 by "
                        "default where several text models are joined); 0: their own length"});
}

/// Sides of a word such as "512x256"; whether the model can draw them is known with the model.
static void read_picture_size(ConfigTable& t, SampleRecipe& s) {
  const std::string word = t.get_string(
      "size", {.def = std::string(),
               .allow_empty = true,
               .doc = "width x height of a picture, pixels, such as \"512x256\", in multiples of "
                      "the model's patch; empty: the bucket of the data set nearest to a square"});
  if (word.empty()) return;
  const size_t cross = word.find('x');
  const auto side = [&](const std::string& text) -> int64_t {
    const bool digits = !text.empty() && text.size() <= 5 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoll(text) : 0;
  };
  s.width = side(word.substr(0, cross));
  s.height = cross == std::string::npos ? 0 : side(word.substr(cross + 1));
  if (s.width < 1 || s.height < 1 || s.width > 16384 || s.height > 16384)
    t.fail("size", fmt::format("\"{}\" is no size; expected two numbers of 1 to 16384, such as "
                               "\"512x256\"",
                               word));
}

/// ddim and dpm go through steps of the schedule that was trained; what is not given is usual.
static void check_sampling_steps(ConfigTable& t, const SampleRecipe& s, const DiffusionRecipe& d) {
  const int64_t steps = s.steps > 0 ? s.steps : s.sampler == "dpm" ? 25 : 50;
  if (s.every_steps > 0 && d.predict != "flow" && steps > d.time_steps)
    t.fail("steps", fmt::format("{} evaluations of diffusion.time_steps = {}; expected 1 to {}",
                                steps, d.time_steps, d.time_steps));
}

SampleRecipe read_sample(ConfigTable t, const DiffusionRecipe& objective) {
  const bool flow = objective.predict == "flow";
  SampleRecipe s;
  s.every_steps = t.get_int(
      "every_steps",
      {.def = 0,
       .min = 0,
       .max = int64_t{1} << 40,
       .doc = "diffusion: steps between grids of pictures, drawn with the average of the "
              "weights where there is one: RUN/samples/step-N.png, and in TensorBoard; 0: none"});
  s.prompts = t.get_string_list(
      "prompts", {.def = std::vector<std::string>{}, .doc = "captions of the grid, in turn"});
  s.labels = t.get_string_list("labels", {.def = std::vector<std::string>{},
                                          .doc = "classes of the grid by name or number, in turn"});
  if (!s.prompts.empty() && !s.labels.empty())
    t.fail("labels", "a model has captions or classes; give prompts or labels");
  s.columns =
      t.get_int("columns", {.def = s.columns, .min = 1, .max = 64, .doc = "pictures of a row"});
  s.rows = t.get_int("rows", {.def = s.rows,
                              .min = 1,
                              .max = 64,
                              .doc = "rows of the grid; the ranks draw them in turn, or rank 0 all "
                                     "where drawing takes models that the stages do not load"});
  s.sampler = t.get_enum("sampler", {.words = {"auto", "ddim", "dpm", "euler"},
                                     .def = s.sampler,
                                     .doc = "auto: euler for flows, else ddim"});
  if (s.sampler != "auto" && flow != (s.sampler == "euler"))
    t.fail("sampler", flow ? "a flow is drawn by euler" : "euler is for flows; take ddim or dpm");
  s.steps =
      t.get_int("steps", {.def = 0,
                          .min = 0,
                          .max = 10000,
                          .doc = "model evaluations of a picture, 0: 25 of dpm, 50 of the others; "
                                 "of ddim and dpm at most diffusion.time_steps"});
  check_sampling_steps(t, s, objective);
  s.guidance = t.get_double(
      "guidance",
      {.def = s.guidance, .min = 0, .max = 100, .doc = "classifier-free guidance, 1: none"});
  s.guide_three = t.get_bool(
      "guide_three", {.def = false,
                      .doc = "guide the first three channels alone, as the original DiT code does "
                             "and sample --guide-three"});
  read_picture_size(t, s);
  s.seed = static_cast<uint64_t>(
      t.get_int("seed", {.def = 0, .min = 0, .doc = "of the noise: the same in every grid"}));
  return s;
}

ValidationRecipe read_validation(ConfigTable t) {
  ValidationRecipe v;
  v.every_steps = t.get_int(
      "every_steps",
      {.def = 0,
       .min = 0,
       .max = int64_t{1} << 40,
       .doc = "diffusion: steps between measurements of the loss of held-out pictures at fixed "
              "times, as mmtrain eval gives it, with the average of the weights where there is "
              "one: in metrics.jsonl and TensorBoard; 0: none"});
  if (const auto data = t.find_path(
          "data", {.must_exist = true,
                   .doc = "bucketed set of those pictures, of the stages' tokenizer or classes"}))
    v.data = *data;
  if (const auto encoded = t.find_path(
          "encoded", {.must_exist = true,
                      .doc = "what mmshard encode made of it, for runs of latents or embeddings; "
                             "without, model.vae and model.text_model encode it on the way"}))
    v.encoded = *encoded;
  v.pictures = t.get_int(
      "pictures",
      {.def = 0, .min = 0, .max = int64_t{1} << 40, .doc = "the first of the set, 0: all"});
  if (v.every_steps > 0 && v.data.empty())
    t.fail("data", "validation.every_steps needs held-out pictures; give a bucketed set of them");
  return v;
}

ModelRecipe::Autoencoder read_autoencoder(ConfigTable t) {
  ModelRecipe::Autoencoder a;
  a.channels = t.get_int_list(
      "channels", {.def = a.channels,
                   .min = 1,
                   .max = 65536,
                   .min_count = 1,
                   .max_count = 8,
                   .doc = "vae: widths of the resolutions, the picture's own first; each but the "
                          "last halves the sides"});
  a.latent_channels = t.get_int(
      "latent_channels",
      {.def = a.latent_channels, .min = 1, .max = 1024, .doc = "vae: channels of the latents"});
  a.layers = t.get_int(
      "layers", {.def = a.layers, .min = 1, .max = 64, .doc = "vae: ResNets of a resolution"});
  a.groups = t.get_int(
      "groups",
      {.def = a.groups, .min = 1, .max = 4096, .doc = "vae: groups of the norms; divide widths"});
  a.scaling_factor = t.get_double(
      "scaling_factor",
      {.def = a.scaling_factor,
       .min = 1e-6,
       .max = 1e6,
       .doc = "vae: what a diffusion model's latents are multiplied by; 1 / their deviation"});
  for (const int64_t width : a.channels) {
    if (width % a.groups != 0)
      t.fail("groups", fmt::format("{} groups do not divide a width of {}", a.groups, width));
  }
  return a;
}

ReconstructionRecipe read_reconstruction(ConfigTable t) {
  ReconstructionRecipe r;
  r.error = t.get_enum(
      "error",
      {.words = {"absolute", "squared"}, .def = r.error, .doc = "vae: of a number of the picture"});
  r.kl_weight =
      t.get_double("kl_weight", {.def = r.kl_weight,
                                 .min = 0,
                                 .max = 1e3,
                                 .doc = "vae: of the latents' divergence from a standard normal"});
  return r;
}

}  // namespace mm::run::detail
