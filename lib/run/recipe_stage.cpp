#include <fmt/ranges.h>

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
       .doc = "steps of linear warm-up; step k has rate base * k / warmup_steps, k from 0; a stage "
              "of no more steps than that warms up for half of them"});
  s.min_ratio = t.get_double(
      "min_ratio",
      {.def = 0.0, .min = 0, .max = 1, .doc = "final rate as a share of the base rate"});
  s.decay_steps = t.get_int(
      "decay_steps", {.def = 0, .min = 0, .max = 1 << 30, .doc = "wsd: steps of the final decay"});
  if (s.kind != "wsd")
    t.refuse_unused({"decay_steps"}, "with kind = \"" + s.kind + "\"; take wsd, or leave it out");
  if (s.kind == "constant")
    t.refuse_unused({"min_ratio"}, "with kind = \"constant\"; take cosine or wsd, or leave it out");
  // A shortened run (--set stage.0.steps=4) keeps its recipe: the warm-up takes half of it at most.
  if (s.warmup_steps >= steps) s.warmup_steps = steps / 2;
  if (s.decay_steps > steps - s.warmup_steps)
    t.fail("decay_steps",
           fmt::format("{} steps do not fit into {} after the warm-up", s.decay_steps, steps));
  return s;
}

AugmentRecipe read_augment(ConfigTable t, const ModelRecipe& model) {
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
  if (model.bucketed())
    t.refuse_unused({"token_drop"}, "in family " + model.family +
                                        ", whose samples have no answers; leave it out "
                                        "(diffusion.label_drop leaves out captions)");
  return a;
}

void read_optimizer(ConfigTable& t, StageRecipe& stage) {
  stage.optimizer = t.get_enum("optimizer", {.words = {"adamw", "lion"},
                                             .def = "adamw",
                                             .doc = "lion: one moment a parameter; its rates are "
                                                    "3 to 10 times smaller"});
  stage.weight_decay =
      t.get_double("weight_decay", {.def = 0.0,
                                    .min = 0,
                                    .max = 10,
                                    .doc = "decoupled, of tensors with two or more dimensions"});
  stage.beta1 =
      t.get_double("beta1", {.def = 0.9, .min = 0, .max = 0.999999, .doc = "AdamW, Lion"});
  stage.beta2 = t.get_double("beta2", {.def = stage.optimizer == "lion" ? 0.99 : 0.999,
                                       .min = 0,
                                       .max = 0.999999,
                                       .doc = "AdamW, Lion (there 0.99 by default)"});
  stage.eps = t.get_double("eps", {.def = 1e-8, .min = 0, .max = 1, .doc = "AdamW"});
  if (stage.optimizer == "lion")
    t.refuse_unused({"eps"}, "with optimizer = \"lion\", which divides by nothing; leave it out");
  stage.clip_norm = t.get_double(
      "clip_norm",
      {.def = 1.0, .min = 0, .max = 1e9, .doc = "limit of the global gradient norm, 0: none"});
  ConfigTable lr = t.table("lr");
  for (const std::string& part : stage.train) {
    stage.lr[part] =
        lr.get_double(part, {.min = 0, .max = 10, .doc = "base learning rate of this part"});
  }
}

void read_packing(ConfigTable& t, StageRecipe& stage) {
  stage.sequence_length = t.get_int(
      "sequence_length",
      {.min = 2, .max = 1 << 24, .doc = "tokens of a pack at most, picture tokens included"});
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
  stage.oversize = t.get_enum(
      "oversize",
      {.words = {"refuse", "drop"},
       .def = "refuse",
       .doc = "a sample that no pack can hold: refuse the run and name it, or leave it out"});
  stage.max_attention_pairs =
      t.get_int("max_attention_pairs",
                {.def = 0,
                 .min = 0,
                 .doc = "sum of s * (s + 1) / 2 over the samples of a pack at most, 0: no cap"});
  stage.image_cost = t.get_double(
      "image_cost", {.def = 0.0,
                     .min = 0,
                     .max = 1e9,
                     .doc = "work of a picture's encoder, in tokens of the language model: steps "
                            "are balanced over ranks by it"});
}

/// Batches of pictures of one shape; `encoded`: the family may take them encoded.
void read_bucket_plan(ConfigTable& t, StageRecipe& stage, bool encoded) {
  stage.packing = "buckets";
  stage.batch_pixels = t.get_int(
      "batch_pixels",
      {.min = 1,
       .max = int64_t{1} << 40,
       .doc = "diffusion: pixels of a batch at most; a batch has one shape, and as many pictures "
              "as fit, but at least one"});
  if (encoded) {
    if (const auto path = t.find_path(
            "encoded",
            {.must_exist = true,
             .doc = "diffusion: what mmshard encode made of `data`: latents in place of pixels, "
                    "embeddings in place of caption ids"}))
      stage.encoded = *path;
  }
  stage.leftovers = t.get_enum(
      "leftovers",
      {.words = {"keep", "drop"},
       .def = "keep",
       .doc = "diffusion: pictures that fill no batch stand in smaller ones, or are left out and "
              "named, with the reason, in RUN/ledger/dropped.jsonl"});
}

}  // namespace

LossRecipe read_loss(ConfigTable owner, const ModelRecipe& model, const LossRecipe& def) {
  ConfigTable t = owner.table("loss");
  LossRecipe loss;
  loss.reduction = t.get_enum(
      "reduction",
      {.words = {"global_token", "micro_mean", "sample_mean", "sqrt"},
       .def = def.reduction,
       .doc = "global_token: all targets of the step weigh the same, over packs and ranks; "
              "micro_mean: mean of the means of groups of packs, as published LLaVA was trained "
              "(depends on how samples are packed); sample_mean: mean of the samples' means; sqrt: "
              "a sample of n targets weighs sqrt(n)"});
  loss.micro_packs = t.get_int(
      "micro_packs",
      {.def = loss.reduction == "micro_mean" ? def.micro_packs : 1,
       .min = 1,
       .max = 1 << 20,
       .doc = "micro_mean: packs of a group, in plan order; with packing none the batch a device "
              "of the run to be reproduced"});
  if (loss.micro_packs != 1 && loss.reduction != "micro_mean")
    t.fail("micro_packs", "only reduction = \"micro_mean\" has groups");
  if (model.bucketed() && loss != def)
    owner.fail("loss",
               "is of vision-language models; a diffusion model's losses are put together as "
               "diffusion.normalisation says");
  return loss;
}

/// "a, b or c".
static std::string one_of(const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  const auto last = words.end() - 1;
  return fmt::format("{} or {}", fmt::join(words.begin(), last, ", "), *last);
}

StageRecipe read_stage(ConfigTable t, const Recipe& run) {
  const std::vector<std::string>& parts = run.model.parts();
  StageRecipe stage;
  stage.name = t.get_string("name", {.doc = "name in logs, metrics and --set"});
  stage.data = t.get_path("data", {.doc = "data set directory that mmshard packed"});
  stage.train =
      t.get_string_list("train", {.def = parts,
                                  .min_count = 1,
                                  .doc = "parts that are trained: vision, projector, language; of "
                                         "diffusion models text_encoder, transformer; vae"});
  for (const std::string& part : stage.train) {
    if (std::find(parts.begin(), parts.end(), part) == parts.end())
      t.fail("train", fmt::format("unknown part \"{}\"; expected {}", part, one_of(parts)));
  }
  if (std::set<std::string>(stage.train.begin(), stage.train.end()).size() != stage.train.size())
    t.fail("train", "a part stands there twice");
  stage.steps = t.get_int(
      "steps", {.min = 1, .max = int64_t{1} << 40, .doc = "optimizer steps of this stage"});
  stage.packs_per_step = t.get_int(
      "packs_per_step",
      {.min = 1,
       .max = 1 << 20,
       .doc = "global batch, in packs (batches of pictures, for buckets), over all ranks"});
  if (run.model.bucketed()) {
    read_bucket_plan(t, stage, run.model.diffusion());
  } else {
    read_packing(t, stage);
  }
  read_optimizer(t, stage);
  stage.schedule = read_schedule(t.table("schedule"), stage.steps);
  stage.augment = read_augment(t.table("augment"), run.model);
  stage.loss = read_loss(t, run.model, run.loss);
  return stage;
}

}  // namespace mm::run::detail
