#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/toml_text.h"
#include "lib/run/import_dialects.h"

namespace mm::run::detail {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 40;

void map_model(ImportContext& c) {
  const auto name = c.text("language_model_type");
  const std::string tower = c.text("vision_model_type").value_or("clip");
  const std::string from = fmt::format("models/{}-{}", name.value_or("language"), tower);
  std::string remark = "a directory in LLaVA's form";
  if (const auto checkpoint = c.text("pretrained_checkpoint"))
    remark += ", converted from " + *checkpoint;
  c.set("model.from", toml_text(from), {"language_model_type", "vision_model_type"}, remark);
  c.map({"pretrained_checkpoint"}, "model.from", "in that directory");
}

/// As map_schedule() takes --lr-decay-style.
bool rate_falls(ImportContext& c) {
  const std::string style = c.text("lr_decay_style").value_or("linear");
  return style == "linear" || style == "cosine" ||
         (style == "WSD" && c.text("lr_wsd_decay_iters").has_value());
}

void map_parts(ImportContext& c) {
  std::vector<std::string> parts;
  if (!c.truth("freeze_ViT")) parts.emplace_back("vision");
  if (!c.truth("freeze_projection")) parts.emplace_back("projector");
  if (!c.truth("freeze_LM")) parts.emplace_back("language");
  if (parts.empty()) c.fail("freeze_LM", "something that is left to train");
  c.set("stage.train", toml_text(parts), {"freeze_ViT", "freeze_LM", "freeze_projection"});
  const auto rate = c.number("lr", 0, 10);
  for (const std::string& part : parts) {
    rate ? c.set("stage.lr." + part, toml_text(*rate), {})
         : c.leave_out("stage.lr." + part, "the run names no --lr that is known");
  }
  if (rate) c.map({"lr"}, "stage.lr", toml_text(*rate));
  const double low = c.number("min_lr", 0, 10).value_or(0);
  if (!rate_falls(c)) return c.needless("min_lr", "the rate of the recipe is constant");
  if (rate && *rate > 0 && low <= *rate)
    c.set("stage.schedule.min_ratio", toml_text(low / *rate), {"min_lr"});
}

/// Samples of a step: packs hold one each, unless the run packs.
void map_batch(ImportContext& c) {
  const int64_t micro = c.integer("micro_batch_size", 1, 1 << 20).value_or(1);
  if (const auto global = c.integer("global_batch_size", 1, 1 << 20)) {
    c.set("stage.packs_per_step", toml_text(*global), {"global_batch_size"});
  } else {
    c.leave_out("stage.packs_per_step", "the run names no --global-batch-size");
  }
  if (c.truth("calculate_per_token_loss")) {
    c.set("stage.loss.reduction", toml_word("global_token"), {"calculate_per_token_loss"});
    return c.needless("micro_batch_size", "every target weighs the same");
  }
  c.draft.set("stage.loss.reduction", toml_word("micro_mean"));
  c.set("stage.loss.micro_packs", toml_text(micro), {"micro_batch_size"});
  c.report.notes.push_back(
      "loss: the run averages over each micro-batch first; leave `loss` out and "
      "every target weighs the same, whatever the batch");
}

int64_t map_steps(ImportContext& c) {
  if (const auto steps = c.integer("train_iters", 1, kMaxSteps)) {
    c.set("stage.steps", toml_text(*steps), {"train_iters"});
    return *steps;
  }
  const auto samples = c.integer("train_samples", 1, kMaxSteps);
  const auto batch = c.integer("global_batch_size", 1, 1 << 20);
  if (samples && batch && *samples >= *batch) {
    c.set("stage.steps", toml_text(*samples / *batch), {"train_samples"});
    return *samples / *batch;
  }
  c.leave_out("stage.steps", "the run names neither --train-iters nor --train-samples");
  return 0;
}

void map_warmup(ImportContext& c, int64_t decay_steps) {
  if (const auto fraction = c.number("lr_warmup_fraction", 0, 1)) {
    set_warmup(c, std::llround(*fraction * static_cast<double>(decay_steps)), "lr_warmup_fraction");
  } else if (const auto steps = c.integer("lr_warmup_iters", 0, 1 << 30)) {
    set_warmup(c, *steps, "lr_warmup_iters");
  }
  if (c.number("lr_warmup_init", 0, 10).value_or(0) > 0)
    c.lose("lr_warmup_init", "the warm-up begins at 0");
}

void map_schedule(ImportContext& c, int64_t steps) {
  const int64_t decay = c.integer("lr_decay_iters", 1, kMaxSteps).value_or(steps);
  map_warmup(c, decay);
  if (decay == steps) c.map({"lr_decay_iters"}, "stage.steps", toml_text(steps));
  c.lose("lr_decay_iters", "the rate falls until the last step of the stage");
  const std::string style = c.text("lr_decay_style").value_or("linear");
  if (style == "linear") return set_linear(c, "lr_decay_style");
  if (style == "cosine" || style == "constant")
    return c.set("stage.schedule.kind", toml_text(style), {"lr_decay_style"});
  const auto wsd = c.integer("lr_wsd_decay_iters", 1, 1 << 30);
  if (style == "WSD" && wsd) {
    c.set("stage.schedule.kind", toml_word("wsd"), {"lr_decay_style"});
    c.set("stage.schedule.decay_steps", toml_text(*wsd), {"lr_wsd_decay_iters"});
    if (c.text("lr_wsd_decay_style").value_or("exponential") != "linear")
      c.lose("lr_wsd_decay_style", "the decay is linear");
    return c.map({"lr_wsd_decay_style"}, "stage.schedule.kind", "wsd");
  }
  c.set("stage.schedule.kind", toml_word("constant"), {});
  c.lose("lr_decay_style", "no such shape here (constant, cosine, wsd): the recipe has constant");
}

void map_optimizer(ImportContext& c) {
  const auto take = [&](const char* flag, const char* key, double high, double def) {
    c.set(key, toml_text(c.number(flag, 0, high).value_or(def)), {flag});
  };
  take("weight_decay", "stage.weight_decay", 10, 0.01);
  take("adam_beta1", "stage.beta1", 0.999999, 0.9);
  take("adam_beta2", "stage.beta2", 0.999999, 0.999);
  take("adam_eps", "stage.eps", 1, 1e-8);
  take("clip_grad", "stage.clip_norm", 1e9, 1.0);
  if (c.text("optimizer").value_or("adam") == "adam")
    c.map({"optimizer"}, "stage.optimizer", toml_word("adamw"));
  c.lose("optimizer", "optimizers here are adamw and lion: the recipe has adamw");
}

void map_precision(ImportContext& c) {
  const bool bf16 = c.truth("bf16"), fp16 = c.truth("fp16");
  c.set("precision.compute", toml_word(bf16 ? "bf16" : fp16 ? "fp16" : "fp32"), {"bf16", "fp16"});
  if (fp16) {
    if (const auto scale = c.number("initial_loss_scale", 1e-7, 1e30))
      set_loss_scale(c, *scale, "initial_loss_scale");
    if (const auto window = c.integer("loss_scale_window", 1, 1 << 30))
      c.set("precision.loss_scale_growth_steps", toml_text(*window), {"loss_scale_window"});
  }
  const std::string granularity = c.text("recompute_granularity").value_or("");
  if (granularity == "full") c.set("recompute.mode", toml_word("block"), {"recompute_granularity"});
  if (granularity == "selective" || c.truth("recompute_activations")) {
    c.set("recompute.mode", toml_word("selective"),
          {"recompute_granularity", "recompute_activations"});
    c.set("recompute.pieces", toml_text(std::vector<std::string>{"attention"}), {});
  }
}

void map_pictures(ImportContext& c, PackCommand& pack) {
  constexpr const char* kPack = "mmshard pack --image-side";
  pack.image_side = c.integer("img_h", 1, 16384).value_or(0);
  const int64_t width = c.integer("img_w", 1, 16384).value_or(pack.image_side);
  if (pack.image_side == width) c.map({"img_h", "img_w"}, kPack, std::to_string(width));
  c.lose("img_w", "pictures are squares");
  pack.patch = c.integer("patch_dim", 1, 1024).value_or(0);
  c.map({"patch_dim"}, "mmshard pack --patch", std::to_string(pack.patch));
  if (c.truth("pixel_shuffle")) {
    pack.merge = 2;
    c.map({"pixel_shuffle"}, "mmshard pack --merge", "2");
  }
  if (c.truth("use_tiling")) {
    pack.geometry = "internvl";
    pack.max_tiles = c.integer("max_num_tiles", 1, 1024).value_or(1);
    pack.thumbnail = c.truth("use_thumbnail");
    c.map({"use_tiling"}, "mmshard pack --geometry", "internvl");
    c.map({"max_num_tiles"}, "mmshard pack --max-tiles", std::to_string(pack.max_tiles));
    c.map({"use_thumbnail"}, "mmshard pack --thumbnail", pack.thumbnail ? "true" : "false");
  }
}

void map_data(ImportContext& c, PackCommand& pack) {
  set_data(c, pack);
  pack.tokenizer = c.text("tokenizer_model").value_or("tokenizer.model");
  c.map({"tokenizer_model"}, "mmshard pack --tokenizer", pack.tokenizer);
  if (pack.source.ends_with(".yaml") || pack.source.ends_with(".yml"))
    c.report.notes.push_back(
        "data: mmshard pack reads the WebDataset tars that the YAML file names (with --weight), "
        "not "
        "the file");
  const std::string format = c.text("tokenizer_prompt_format").value_or("");
  if (format == "llama3" || format == "llama3p1") pack.chat_template = "llama3";
  if (format == "chatml" || format == "qwen2p0" || format == "qwen2p5")
    pack.chat_template = "chatml";
  if (!pack.chat_template.empty())
    c.map({"tokenizer_prompt_format"}, "mmshard pack --template", pack.chat_template);
  c.lose("tokenizer_prompt_format",
         "no template of that name here; write it as a TOML file for --template");
  map_pictures(c, pack);
}

/// Newer scripts say what decoder and loader see, older ones --seq-length alone; with pictures in.
void map_length(ImportContext& c, PackCommand& pack) {
  const bool packs = c.integer("packing_buffer_size", 0, 1 << 30).value_or(0) > 0;
  c.draft.set("stage.packing", toml_word(packs ? "tight" : "none"));
  std::optional<int64_t> length;
  const auto take = [&](const char* flag) {
    const auto value = c.integer(flag, 0, 1 << 24);
    if (length || !value || *value < 2) return;
    length = value;
    pack.max_length = *value;
    c.set("stage.sequence_length", toml_text(*value), {flag});
  };
  if (packs) take("packing_seq_length");
  take("dataloader_seq_length");
  take("decoder_seq_length");
  take("seq_length");
  if (packs) c.map({"packing_buffer_size"}, "stage.packing", "tight");
  c.needless("packing_buffer_size", "0: no packing");
  for (const char* flag :
       {"packing_seq_length", "dataloader_seq_length", "decoder_seq_length", "seq_length"})
    c.needless(flag, "sequence_length comes from another flag");
  if (!length) c.leave_out("stage.sequence_length", "the run names no length that is known");
}

void map_saving(ImportContext& c) {
  if (const auto every = c.integer("save_interval", 1, int64_t{1} << 40))
    c.set("checkpoint.every_steps", toml_text(*every), {"save_interval"});
  if (const auto every = c.integer("log_interval", 1, 1 << 30))
    c.set("run.log_every", toml_text(*every), {"log_interval"});
  if (const auto seed = c.integer("seed", 0, int64_t{1} << 62))
    c.set("run.seed", toml_text(*seed), {"seed"}, "order and initial weights are drawn otherwise");
  if (const auto workers = c.integer("num_workers", 0, 256))
    c.set("loader.threads", toml_text(std::max<int64_t>(*workers, 1)), {"num_workers"});
}

}  // namespace

void map_megatron(ImportContext& c, PackCommand& pack) {
  c.draft.set("stage.name", toml_word(c.truth("freeze_LM") ? "pretrain" : "finetune"));
  map_model(c);
  map_data(c, pack);
  map_length(c, pack);
  map_parts(c);
  map_batch(c);
  map_schedule(c, map_steps(c));
  map_optimizer(c);
  map_precision(c);
  map_saving(c);
  const std::string run = c.text("save").value_or("runs/megatron");
  c.map({"save"}, "mmtrain run --run", run);
  c.report.commands.push_back(fmt::format("mmtrain launch --nproc {} -- run {} --run {}",
                                          c.command.world.value_or(1),
                                          shell_quoted(c.options.recipe), shell_quoted(run)));
}

}  // namespace mm::run::detail
