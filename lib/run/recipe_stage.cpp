#include <algorithm>
#include <set>

#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

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

}  // namespace

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

}  // namespace mm::run::detail
