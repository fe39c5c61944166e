#include "lib/run/import_deepspeed.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::run::detail {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMaxBytes = 1 << 20;
constexpr size_t kMaxLeaves = 4096;

std::string leaf_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  return value.dump();
}

void flatten(const Json& value, const std::string& path, const std::string& file,
             std::vector<ImportFlag>& out) {
  if (out.size() > kMaxLeaves)
    throw DataError("{}: more than {} values; expected a DeepSpeed configuration", file,
                    kMaxLeaves);
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items())
      flatten(inner, path.empty() ? key : path + "." + key, file, out);
    return;
  }
  out.push_back({file + ": " + path, "deepspeed." + path, {leaf_text(value)}});
}

/// As the script would find it, or beside the script or above it.
std::optional<fs::path> locate(const fs::path& named, const fs::path& script) {
  std::error_code error;
  if (fs::is_regular_file(named, error)) return named;
  if (named.is_absolute()) return std::nullopt;
  for (fs::path at = fs::absolute(script).lexically_normal().parent_path();;
       at = at.parent_path()) {
    if (fs::is_regular_file(at / named, error)) return at / named;
    if (at == at.parent_path()) return std::nullopt;
  }
}

constexpr FlagRemark kRemarks[] = {
    {"deepspeed.zero_optimization.stage", "0", true, "no sharding"},
    {"deepspeed.zero_optimization.stage", "", true,
     "where states lie does not change the result; every rank holds all of them here"},
    {"deepspeed.steps_per_print", "", true, "run.log_every says how often steps are printed"},
    {"deepspeed.wall_clock_breakdown", "", true, "metrics.jsonl has the times of every step"},
    {"deepspeed.bf16.loss_scale", "", true, "bf16 needs no loss scale"},
};

bool is_layout(std::string_view key) {
  return key.starts_with("deepspeed.zero_optimization.") || key.starts_with("deepspeed.comms") ||
         key.starts_with("deepspeed.activation_checkpointing.") ||
         key.starts_with("deepspeed.tensorboard") || key.starts_with("deepspeed.wandb") ||
         key.starts_with("deepspeed.flops_profiler") || key.starts_with("deepspeed.aio") ||
         key.starts_with("deepspeed.communication_data_type") ||
         key.starts_with("deepspeed.zero_allow_untested_optimizer");
}

}  // namespace

std::vector<ImportFlag> read_deepspeed(const fs::path& file) {
  const Json json = parse_json(read_file(file, kMaxBytes), file.string());
  if (!json.is_object())
    throw DataError("{}: expected an object, as in a DeepSpeed configuration", file.string());
  std::vector<ImportFlag> out;
  flatten(json, "", file.filename().string(), out);
  return out;
}

void add_deepspeed(ImportContext& context, const fs::path& script) {
  const auto named = context.options.deepspeed.empty()
                         ? context.text("deepspeed")
                         : std::optional(context.options.deepspeed.string());
  if (!named) return;
  if (!context.options.deepspeed.empty()) {
    context.add(read_deepspeed(*named));
  } else if (const auto found = locate(*named, script)) {
    context.add(read_deepspeed(*found));
  } else {
    return context.lose("deepspeed",
                        "there is no such file here; give it with --deepspeed FILE, for it may set "
                        "batch, precision and clipping");
  }
  context.needless("deepspeed", "read: its values are listed one by one");
}

std::optional<double> deepspeed_number(ImportContext& context, std::string_view key) {
  if (!context.given(key) || context.shown(key) == "auto") return std::nullopt;
  return context.number(key, 0, 1e15);
}

bool deepspeed_truth(ImportContext& context, std::string_view key) {
  return context.given(key) && context.shown(key) != "auto" && context.truth(key);
}

void map_deepspeed(ImportContext& context, const DeepspeedBatch& batch) {
  const auto agree = [&](std::string_view key, int64_t ours, const char* what) {
    const auto theirs = deepspeed_number(context, key);
    if (!theirs || ours == 0) return;
    if (*theirs == static_cast<double>(ours)) return context.needless(key, "agrees with the run");
    context.lose(key,
                 fmt::format("the run's arguments give {} {}; the trainer refuses such a pair, "
                             "the recipe follows the arguments",
                             ours, what));
  };
  agree("deepspeed.train_micro_batch_size_per_gpu", batch.per_device, "samples a device");
  agree("deepspeed.gradient_accumulation_steps", batch.accumulation, "micro-batches");
  agree("deepspeed.train_batch_size", batch.per_device * batch.accumulation * batch.world,
        "samples a step");
  std::vector<std::string> keys;
  for (const ImportFlag& flag : context.all()) {
    if (flag.key.starts_with("deepspeed.")) keys.push_back(flag.key);
  }
  for (const std::string& key : keys) {
    if (context.shown(key) == "auto") context.needless(key, "follows the run's arguments");
  }
  for (const FlagRemark& remark : kRemarks) {
    if (remark.only.empty() || context.shown(remark.key) == remark.only)
      remark.needless ? context.needless(remark.key, remark.reason)
                      : context.lose(remark.key, remark.reason);
  }
  for (const std::string& key : keys) {
    if (is_layout(key)) context.needless(key, "how the run was laid out, not what it computes");
    if (key.starts_with("deepspeed.fp16.") && !deepspeed_truth(context, "deepspeed.fp16.enabled"))
      context.needless(key, "fp16 is not what this run computes in");
  }
}

}  // namespace mm::run::detail
