#include "lib/run/recipe.h"

#include <algorithm>
#include <set>

#include "lib/base/config.h"
#include "lib/base/error.h"
#include "lib/data/plan_file.h"

namespace mm::run {
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

ModelRecipe::Normalise read_normalise(ConfigTable t) {
  ModelRecipe::Normalise n;
  n.mean = t.get_double_list("image_mean",
                             {.def = n.mean,
                              .min = -10,
                              .max = 10,
                              .min_count = 3,
                              .max_count = 3,
                              .doc = "subtracted from byte / 255, per channel; default: CLIP's"});
  n.std = t.get_double_list("image_std", {.def = n.std,
                                          .min = 1e-6,
                                          .max = 10,
                                          .min_count = 3,
                                          .max_count = 3,
                                          .doc = "then divides, per channel; default: CLIP's"});
  return n;
}

ModelRecipe read_model(ConfigTable t) {
  ModelRecipe model;
  model.normalise = read_normalise(t);
  model.family = t.get_enum("family", {.words = {"llava"}, .def = "llava", .doc = "model family"});
  if (const auto from = t.find_path("from", {.must_exist = true,
                                             .doc = "Hugging Face LLaVA directory to start from; "
                                                    "its config.json then gives all sizes"})) {
    model.from = *from;
    for (const char* key : {"vision", "language"}) {
      if (t.table(key).present()) t.fail(key, "sizes come from model.from; leave this table out");
    }
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
  model.vision = read_vision(t.table("vision"));
  model.language = read_language(t.table("language"));
  return model;
}

ScheduleRecipe read_schedule(ConfigTable t, int64_t steps) {
  ScheduleRecipe s;
  s.kind = t.get_enum(
      "kind",
      {.words = {"constant", "cosine", "wsd"}, .def = "cosine", .doc = "shape after the warm-up"});
  s.warmup_steps = t.get_int(
      "warmup_steps",
      {.def = 0,
       .min = 0,
       .max = 1 << 30,
       .doc = "steps of linear warm-up; step k has rate base * k / warmup_steps, k from 0"});
  s.min_ratio = t.get_double(
      "min_ratio",
      {.def = 0.0, .min = 0, .max = 1, .doc = "final rate as a share of the base rate"});
  s.decay_steps = t.get_int(
      "decay_steps", {.def = 0, .min = 0, .max = 1 << 30, .doc = "wsd: steps of the final decay"});
  // A shortened run (--set stage.0.steps=4) keeps its recipe: the warm-up takes half of it at most.
  if (s.warmup_steps >= steps) s.warmup_steps = steps / 2;
  if (s.decay_steps > steps - s.warmup_steps)
    t.fail("decay_steps",
           fmt::format("{} steps do not fit into {} after the warm-up", s.decay_steps, steps));
  return s;
}

AugmentRecipe read_augment(ConfigTable t) {
  AugmentRecipe a;
  a.shift_pixels =
      t.get_int("shift_pixels", {.def = 0,
                                 .min = 0,
                                 .max = 4096,
                                 .doc = "largest random shift, pixels; the edge colour fills"});
  a.flip_probability = t.get_double(
      "flip_probability", {.def = 0.0, .min = 0, .max = 1, .doc = "chance of a left-right flip"});
  a.brightness = t.get_double(
      "brightness",
      {.def = 0.0, .min = 0, .max = 1, .doc = "largest relative change of brightness"});
  a.token_drop = t.get_double(
      "token_drop",
      {.def = 0.0,
       .min = 0,
       .max = 1,
       .doc = "chance that a token of the answer is hidden from the input (it stays a target)"});
  return a;
}

void read_optimizer(ConfigTable& t, StageRecipe& stage) {
  stage.weight_decay =
      t.get_double("weight_decay", {.def = 0.0,
                                    .min = 0,
                                    .max = 10,
                                    .doc = "decoupled, of tensors with two or more dimensions"});
  stage.beta1 = t.get_double("beta1", {.def = 0.9, .min = 0, .max = 0.999999, .doc = "AdamW"});
  stage.beta2 = t.get_double("beta2", {.def = 0.999, .min = 0, .max = 0.999999, .doc = "AdamW"});
  stage.eps = t.get_double("eps", {.def = 1e-8, .min = 0, .max = 1, .doc = "AdamW"});
  stage.clip_norm = t.get_double(
      "clip_norm",
      {.def = 1.0, .min = 0, .max = 1e9, .doc = "limit of the global gradient norm, 0: none"});
  ConfigTable lr = t.table("lr");
  for (const std::string& part : stage.train) {
    stage.lr[part] =
        lr.get_double(part, {.min = 0, .max = 10, .doc = "base learning rate of this part"});
  }
}

StageRecipe read_stage(ConfigTable t) {
  StageRecipe stage;
  stage.name = t.get_string("name", {.doc = "name in logs, metrics and --set"});
  stage.data = t.get_path("data", {.doc = "data set directory that mmshard packed"});
  stage.train =
      t.get_string_list("train", {.def = kParts,
                                  .min_count = 1,
                                  .doc = "parts that are trained: vision, projector, language"});
  for (const std::string& part : stage.train) {
    if (std::find(kParts.begin(), kParts.end(), part) == kParts.end())
      t.fail("train",
             fmt::format("unknown part \"{}\"; expected vision, projector or language", part));
  }
  if (std::set<std::string>(stage.train.begin(), stage.train.end()).size() != stage.train.size())
    t.fail("train", "a part stands there twice");
  stage.steps = t.get_int(
      "steps", {.min = 1, .max = int64_t{1} << 40, .doc = "optimizer steps of this stage"});
  stage.sequence_length = t.get_int(
      "sequence_length",
      {.min = 2, .max = 1 << 24, .doc = "tokens of a pack at most, picture tokens included"});
  stage.packs_per_step =
      t.get_int("packs_per_step",
                {.min = 1, .max = 1 << 20, .doc = "global batch, in packs, over all ranks"});
  stage.max_images = t.get_int(
      "max_images",
      {.def = 0, .min = 0, .max = 1 << 20, .doc = "pictures of a pack at most, 0: no cap"});
  stage.packing = t.get_enum(
      "packing",
      {.words = {"tight", "greedy", "best_fit", "exact", "search", "shuffled", "none"},
       .def = "tight",
       .doc =
           "tight: least padding, the best of greedy, best_fit, exact and search; shuffled: each "
           "pack a random draw; none: one sample a pack"});
  read_optimizer(t, stage);
  stage.schedule = read_schedule(t.table("schedule"), stage.steps);
  stage.augment = read_augment(t.table("augment"));
  return stage;
}

void read_machine(ConfigTable root, Recipe& recipe) {
  ConfigTable precision = root.table("precision");
  recipe.compute = precision.get_enum(
      "compute",
      {.words = {"auto", "fp32", "bf16", "float64"},
       .def = "auto",
       .doc = "dtype of forward and backward; auto: bf16 where the CPU multiplies it fast, else "
              "fp32. Masters, moments and sums are fp32 (float64 in float64 runs)"});
  ConfigTable comm = root.table("comm");
  recipe.backend = comm.get_enum(
      "backend", {.words = {"gloo"}, .def = "gloo", .doc = "collectives between ranks"});
  recipe.comm_timeout_s = comm.get_double(
      "timeout_s",
      {.def = 60.0, .min = 0.1, .max = 86400, .doc = "deadline of every collective, seconds"});
  recipe.bucket_mib = comm.get_int(
      "bucket_mib", {.def = 4, .min = 1, .max = 4096, .doc = "size of a gradient bucket, MiB"});
  ConfigTable checkpoint = root.table("checkpoint");
  recipe.checkpoint_every = checkpoint.get_int(
      "every_steps", {.def = 0,
                      .min = 0,
                      .max = int64_t{1} << 40,
                      .doc = "steps between saves, 0: only at the end of a stage"});
  recipe.checkpoint_keep = checkpoint.get_int(
      "keep_last", {.def = 2, .min = 2, .max = 1 << 20, .doc = "committed checkpoints to keep"});
  ConfigTable loader = root.table("loader");
  recipe.loader_threads =
      loader.get_int("threads", {.def = 1, .min = 1, .max = 256, .doc = "prefetch threads a rank"});
  recipe.loader_prefetch =
      loader.get_int("prefetch", {.def = 4, .min = 1, .max = 4096, .doc = "steps read ahead"});
  recipe.bad_sample_limit = loader.get_double(
      "bad_sample_limit",
      {.def = 0.001,
       .min = 0,
       .max = 1,
       .doc = "share of samples that may fail at read time; above it the run ends"});
}

/// How data come to the ranks: never what they are.
void read_data_access(ConfigTable root, Recipe& recipe) {
  ConfigTable loader = root.table("loader");
  recipe.loader_max_threads =
      loader.get_int("max_threads", {.def = 0,
                                     .min = 0,
                                     .max = 256,
                                     .doc = "threads may grow to so many while steps are waited "
                                            "for; 0: they stay"});
  recipe.loader_max_prefetch =
      loader.get_int("max_prefetch", {.def = 0,
                                      .min = 0,
                                      .max = 4096,
                                      .doc = "steps read ahead may grow to so many while steps "
                                             "are waited for; 0: they stay"});
  recipe.loader_memory_mib =
      loader.get_int("memory_mib", {.def = 0,
                                    .min = 0,
                                    .max = int64_t{1} << 30,
                                    .doc = "MiB a rank for steps read ahead, 0: no limit"});
  ConfigTable data = root.table("data");
  if (const auto directory = data.find_path(
          "cache_dir",
          {.doc = "folder of its own on a disk of the node for copies of shards, fetched in the "
                  "order of the plan"}))
    recipe.cache_dir = *directory;
  recipe.cache_bytes = data.get_int(
      "cache_bytes", {.def = int64_t{64} << 30,
                      .min = 1,
                      .doc = "bytes of cache_dir, for all processes of the node together"});
  recipe.cache_memory_bytes = data.get_int(
      "cache_memory_bytes", {.def = 0,
                             .min = 0,
                             .doc = "bytes of memory (/dev/shm) for copies of shards, for all "
                                    "processes of the node together; 0: none"});
}

void check_stage_names(ConfigTable& root, const std::vector<StageRecipe>& stages) {
  if (stages.empty()) root.fail("stage", "no [[stage]] in the recipe; expected at least one");
  std::set<std::string> names;
  for (const StageRecipe& stage : stages) {
    if (!names.insert(stage.name).second)
      root.fail("stage", fmt::format("two stages are named \"{}\"", stage.name));
  }
}

}  // namespace

int64_t Recipe::total_steps() const {
  int64_t total = 0;
  for (const StageRecipe& stage : stages) total += stage.steps;
  return total;
}

std::pair<size_t, int64_t> Recipe::locate(int64_t global_step) const {
  size_t index = 0;
  while (index + 1 < stages.size() && global_step >= stages[index].steps)
    global_step -= stages[index++].steps;
  return {index, global_step};
}

Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  ConfigDocument document = ConfigDocument::load(path);
  for (const std::string& assignment : overrides) document.apply_override(assignment);
  ConfigTable root = document.root();
  Recipe recipe{.path = path};
  ConfigTable run = root.table("run");
  recipe.seed = static_cast<uint64_t>(run.get_int(
      "seed",
      {.def = 0, .min = 0, .doc = "seed of initial weights, sample order and augmentation"}));
  recipe.log_every =
      run.get_int("log_every", {.def = 10,
                                .min = 1,
                                .max = 1 << 30,
                                .doc = "steps between step lines (metrics.jsonl has every step)"});
  if (const auto from = root.table("init").find_path(
          "from", {.must_exist = true,
                   .doc = "run or checkpoint directory whose weights training starts from"}))
    recipe.init_from = *from;
  recipe.model = read_model(root.table("model"));
  read_machine(root, recipe);
  read_data_access(root, recipe);
  for (const ConfigTable& stage : root.array_of_tables("stage"))
    recipe.stages.push_back(read_stage(stage));
  check_stage_names(root, recipe.stages);
  root.finish();
  recipe.resolved = document.to_toml();
  recipe.reference = reference_markdown(document.reference());
  return recipe;
}

Json resume_contract(const Recipe& r) {
  const auto& v = r.model.vision;
  const auto& l = r.model.language;
  Json json{{"run.seed", r.seed},
            {"plan.version", data::kPlannerVersion},
            {"model.from", r.model.from.string()},
            {"model.image_norm", {r.model.normalise.mean, r.model.normalise.std}},
            {"model.vision",
             {v.hidden, v.layers, v.heads, v.mlp, v.patch, v.image_side, v.feature_layer}},
            {"model.language",
             {l.hidden, l.layers, l.heads, l.kv_heads, l.mlp, l.rope_theta, l.tied_head}}};
  for (size_t i = 0; i < r.stages.size(); ++i) {
    const StageRecipe& s = r.stages[i];
    const std::string prefix = fmt::format("stage.{}.", i);
    json[prefix + "steps"] = s.steps;
    json[prefix + "train"] = s.train;
    json[prefix + "batch"] = {s.sequence_length, s.packs_per_step, s.max_images, s.packing};
  }
  return json;
}

}  // namespace mm::run
