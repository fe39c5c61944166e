#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/toml_text.h"
#include "lib/run/import_deepspeed.h"
#include "lib/run/import_dialects.h"

namespace mm::run::detail {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 40;

struct KnownSet {
  std::string_view file;
  int64_t samples;
};
// The two published sets of LLaVA-1.5.
constexpr KnownSet kKnownSets[] = {{"blip_laion_cc_sbu_558k.json", 558'128},
                                   {"llava_v1_5_mix665k.json", 665'298}};

struct Batch {
  int64_t per_device = 8, accumulation = 1, world = 0;
};

std::string counted(double epochs) {
  return fmt::format("{} epoch{}", epochs, epochs == 1 ? "" : "s");
}

/// Rows of the data, 0 if they cannot be known.
int64_t samples_of(ImportContext& c) {
  if (c.options.samples > 0) return c.options.samples;
  const std::string path = c.shown("data_path");
  for (const KnownSet& set : kKnownSets) {
    if (!path.ends_with(set.file)) continue;
    const std::string note = fmt::format(
        "{} is taken to have its published {} samples; --samples N "
        "says otherwise",
        set.file, set.samples);
    std::vector<std::string>& notes = c.report.notes;
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    return set.samples;
  }
  return 0;
}

/// The global batch counts samples, so packs hold one each, and a group of the published loss is
/// what a device took at once.
Batch map_batch(ImportContext& c) {
  Batch batch{.world = c.options.world > 0 ? c.options.world : c.command.world.value_or(0)};
  batch.per_device = c.integer("per_device_train_batch_size", 1, 1 << 20).value_or(8);
  batch.accumulation = c.integer("gradient_accumulation_steps", 1, 1 << 20).value_or(1);
  c.draft.set("stage.packing", toml_word("none"), "a pack is a sample, as in the run's batch");
  const int64_t global = batch.world * batch.per_device * batch.accumulation;
  if (global > 1 << 20) c.fail("per_device_train_batch_size", "a global batch of at most 1048576");
  if (global > 0) {
    c.set("stage.packs_per_step", toml_text(global),
          {"per_device_train_batch_size", "gradient_accumulation_steps"},
          fmt::format("{} a device x {} accumulated x {} processes", batch.per_device,
                      batch.accumulation, batch.world));
  } else {
    c.leave_out("stage.packs_per_step",
                fmt::format("{} a device x {} accumulated x the run's processes; give --world N",
                            batch.per_device, batch.accumulation));
    c.map({"per_device_train_batch_size", "gradient_accumulation_steps"}, "stage.packs_per_step",
          "?");
  }
  c.draft.set("stage.loss.reduction", toml_word("micro_mean"));
  c.draft.set("stage.loss.micro_packs", toml_text(batch.per_device));
  c.report.notes.push_back(
      "loss: the run averages over each device's batch first (transformers until 4.46); leave "
      "`loss` out and every target weighs the same, whatever the batch");
  return batch;
}

/// As the trainer counts: batches of an epoch over all devices, rounded up, in whole accumulations.
/// 0 if they cannot be known.
int64_t steps_an_epoch(int64_t samples, const Batch& b) {
  if (samples == 0 || b.world == 0) return 0;
  const int64_t at_once = b.per_device * b.world;
  const int64_t batches = samples / at_once + (samples % at_once != 0 ? 1 : 0);
  return std::max<int64_t>(batches / b.accumulation, 1);
}

/// 0 if they cannot be known.
int64_t map_steps(ImportContext& c, const Batch& batch) {
  const double epochs = c.number("num_train_epochs", 0, 1e6).value_or(3);
  if (const auto steps = c.integer("max_steps", -1, kMaxSteps); steps && *steps > 0) {
    c.needless("num_train_epochs", "max_steps goes before it");
    c.set("stage.steps", toml_text(*steps), {"max_steps"});
    return *steps;
  }
  const int64_t samples = samples_of(c);
  if (samples == 0 || batch.world == 0) {
    c.leave_out("stage.steps", fmt::format("{}; give {}", counted(epochs),
                                           samples == 0 ? "--samples N, the rows of the data"
                                                        : "--world N, the run's processes"));
    c.map({"num_train_epochs"}, "stage.steps", "?");
    return 0;
  }
  const int64_t an_epoch = steps_an_epoch(samples, batch);
  const auto steps = static_cast<int64_t>(std::ceil(epochs * static_cast<double>(an_epoch)));
  if (steps < 1 || steps > kMaxSteps) c.fail("num_train_epochs", "at least one step");
  c.set("stage.steps", toml_text(steps), {"num_train_epochs"},
        fmt::format("{} of {} steps: {} samples", counted(epochs), an_epoch, samples));
  return steps;
}

void map_warmup(ImportContext& c, int64_t steps) {
  const double ratio = c.number("warmup_ratio", 0, 1).value_or(0);
  const int64_t given = c.integer("warmup_steps", 0, 1 << 30).value_or(0);
  if (given > 0) {
    c.needless("warmup_ratio", "warmup_steps goes before it");
    set_warmup(c, given, "warmup_steps");
  } else if (ratio > 0 && steps == 0) {
    c.leave_out("stage.schedule.warmup_steps",
                fmt::format("{} of steps that are not known, rounded up", ratio));
    c.map({"warmup_ratio"}, "stage.schedule.warmup_steps", "?");
  } else if (ratio > 0) {
    set_warmup(c, static_cast<int64_t>(std::ceil(ratio * static_cast<double>(steps))),
               "warmup_ratio");
  }
  c.needless("warmup_steps", "0: no warm-up of that form");
  c.needless("warmup_ratio", "0: no warm-up of that form");
}

void map_schedule(ImportContext& c) {
  constexpr const char* kFlag = "lr_scheduler_type";
  const std::string kind = c.text(kFlag).value_or("linear");
  if (kind == "cosine") return c.set("stage.schedule.kind", toml_word("cosine"), {kFlag});
  if (kind == "linear") return set_linear(c, kFlag);
  c.set("stage.schedule.kind", toml_word("constant"), {});
  if (kind == "constant" || kind == "constant_with_warmup")
    return c.map({kFlag}, "stage.schedule.kind", toml_word("constant"));
  c.lose(kFlag, "no such shape here (constant, cosine, wsd): the recipe has constant");
}

void map_optimizer(ImportContext& c) {
  const auto take = [&](const char* flag, const char* key, double low, double high, double def) {
    const double value = c.number(flag, low, high).value_or(def);
    c.set(key, toml_text(value), {flag});
  };
  take("weight_decay", "stage.weight_decay", 0, 10, 0);
  take("adam_beta1", "stage.beta1", 0, 0.999999, 0.9);
  take("adam_beta2", "stage.beta2", 0, 0.999999, 0.999);
  const std::string optimizer = c.text("optim").value_or("adamw_torch");
  const bool lion = optimizer == "lion" || optimizer == "lion_32bit";
  if (!lion) take("adam_epsilon", "stage.eps", 0, 1, 1e-8);
  c.needless("adam_epsilon", "lion divides by nothing");
  const auto own = deepspeed_number(c, "deepspeed.gradient_clipping");
  if (own && *own <= 1e9) {
    c.set("stage.clip_norm", toml_text(*own), {"deepspeed.gradient_clipping"});
    c.needless("max_grad_norm", "the DeepSpeed file's gradient_clipping goes before it");
  } else {
    take("max_grad_norm", "stage.clip_norm", 0, 1e9, 1.0);
  }
  if (lion) return c.set("stage.optimizer", toml_word("lion"), {"optim"});
  if (optimizer.starts_with("adamw") && optimizer.find("bit") == std::string::npos)
    return c.map({"optim"}, "stage.optimizer", toml_word("adamw"));
  c.lose("optim", "optimizers here are adamw and lion: the recipe has adamw");
}

void map_fp16(ImportContext& c) {
  c.set("precision.compute", toml_word("fp16"), {"fp16", "deepspeed.fp16.enabled"});
  if (const auto scale = deepspeed_number(c, "deepspeed.fp16.loss_scale"); scale && *scale > 0)
    c.lose("deepspeed.fp16.loss_scale", "the scale moves here: halved at overflow, else doubled");
  c.needless("deepspeed.fp16.loss_scale", "0: the scale moves, as here");
  const auto power = deepspeed_number(c, "deepspeed.fp16.initial_scale_power");
  if (power && *power <= 99)
    set_loss_scale(c, std::exp2(*power), "deepspeed.fp16.initial_scale_power");
  if (const auto window = c.integer("deepspeed.fp16.loss_scale_window", 1, 1 << 30))
    c.set("precision.loss_scale_growth_steps", toml_text(*window),
          {"deepspeed.fp16.loss_scale_window"});
  c.lose("deepspeed.fp16.hysteresis", "the scale is halved at the first overflow");
  c.lose("deepspeed.fp16.min_loss_scale",
         "the scale may fall to 2^-24, where an overflow ends the run with an error");
}

void map_precision(ImportContext& c) {
  const bool bf16 = c.truth("bf16") || deepspeed_truth(c, "deepspeed.bf16.enabled");
  if (bf16) {
    c.set("precision.compute", toml_word("bf16"), {"bf16", "deepspeed.bf16.enabled"});
    c.needless("tf32", "the products of this run are bf16");
  } else if (c.truth("fp16") || deepspeed_truth(c, "deepspeed.fp16.enabled")) {
    map_fp16(c);
    c.needless("tf32", "the products of this run are fp16");
  } else {
    c.set("precision.compute", toml_word("fp32"), {"bf16"});
    if (c.truth("tf32")) c.lose("tf32", "products in fp32 keep all bits here");
  }
  for (const char* flag : {"bf16", "fp16", "tf32"}) c.needless(flag, "off");
  if (c.truth("gradient_checkpointing"))
    c.set("recompute.mode", toml_word("block"), {"gradient_checkpointing"});
}

void map_save_times(ImportContext& c, const Batch& batch) {
  constexpr const char* kKey = "checkpoint.every_steps";
  const std::string strategy = c.text("save_strategy").value_or("steps");
  int64_t every = 0;
  if (strategy == "steps") every = c.integer("save_steps", 1, int64_t{1} << 40).value_or(500);
  if (strategy == "epoch") every = steps_an_epoch(samples_of(c), batch);
  c.draft.set(kKey, toml_text(every), every == 0 ? "at the end alone" : "");
  if (strategy == "epoch" && every == 0)
    c.lose("save_strategy",
           "the steps of an epoch are not known (give --samples N and --world N): the recipe saves "
           "at the end alone");
  else
    c.map({"save_strategy"}, kKey, toml_text(every));
  c.map({"save_steps"}, kKey, toml_text(every));
}

void map_saving(ImportContext& c, const Batch& batch) {
  map_save_times(c, batch);
  if (const auto keep = c.integer("save_total_limit", 1, 1 << 20)) {
    c.set("checkpoint.keep_last", toml_text(std::max<int64_t>(*keep, 2)), {"save_total_limit"},
          *keep < 2 ? "2 at least: the older one stays until the newer one is whole" : "");
  }
  if (const auto steps = c.integer("logging_steps", 1, 1 << 30))
    c.set("run.log_every", toml_text(*steps), {"logging_steps"});
  if (const auto seed = c.integer("seed", 0, int64_t{1} << 62))
    c.set("run.seed", toml_text(*seed), {"seed"}, "order and initial weights are drawn otherwise");
  if (const auto workers = c.integer("dataloader_num_workers", 0, 256)) {
    c.set("loader.threads", toml_text(std::max<int64_t>(*workers, 1)), {"dataloader_num_workers"});
  }
  if (const auto ahead = c.integer("dataloader_prefetch_factor", 1, 4096))
    c.set("loader.prefetch", toml_text(*ahead), {"dataloader_prefetch_factor"});
}

}  // namespace

void set_warmup(ImportContext& c, int64_t warmup, std::string_view flag) {
  c.set("stage.schedule.warmup_steps", toml_text(warmup), {flag});
}

void set_loss_scale(ImportContext& c, double scale, std::string_view flag) {
  constexpr double kSmallest = 0x1p-23;  // what the recipe takes
  const double rounded = std::max(kSmallest, std::exp2(std::floor(std::log2(scale))));
  c.set("precision.loss_scale", toml_text(rounded), {flag},
        rounded == scale ? "" : fmt::format("{}, rounded to a power of two", scale));
}

void set_linear(ImportContext& c, std::string_view flag) {
  c.set("stage.schedule.kind", toml_word("wsd"), {flag},
        "linear: all steps behind the warm-up decay");
  const auto steps = c.draft.get("stage.steps");
  const auto warmup = c.draft.get("stage.schedule.warmup_steps");
  if (steps) {
    c.set("stage.schedule.decay_steps",
          toml_text(std::max<int64_t>(std::stoll(*steps) - (warmup ? std::stoll(*warmup) : 0), 0)),
          {});
  } else {
    c.leave_out("stage.schedule.decay_steps", "steps - warmup_steps");
  }
}

int64_t map_hf_trainer(ImportContext& c) {
  const Batch batch = map_batch(c);
  const int64_t steps = map_steps(c, batch);
  map_warmup(c, steps);
  map_schedule(c);
  map_optimizer(c);
  map_precision(c);
  map_saving(c, batch);
  map_deepspeed(c, {batch.per_device, batch.accumulation, batch.world});
  return batch.world;
}

}  // namespace mm::run::detail
