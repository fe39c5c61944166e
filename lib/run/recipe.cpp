#include "lib/run/recipe.h"

#include <algorithm>
#include <set>

#include "lib/base/config.h"
#include "lib/base/error.h"
#include "lib/data/plan_file.h"
#include "lib/run/recipe_tables.h"

namespace mm::run {
namespace {

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

Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                   RecipePaths paths) {
  ConfigDocument document = ConfigDocument::load(path);
  if (paths != RecipePaths::kMustExist) document.let_paths_be_absent();
  if (paths == RecipePaths::kOfRun) document.let_unused_keys_stand();
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
  recipe.costliest_first = run.get_bool(
      "costliest_first",
      {.def = false,
       .doc = "before a stage's first step, forward and backward of its costliest pack without an "
              "update: what fits then fits always"});
  recipe.memory_check = run.get_enum(
      "memory_check",
      {.words = {"refuse", "warn", "off"},
       .def = "refuse",
       .doc = "when what a rank will hold at its fullest, by estimate, is more than the node has"});
  if (const auto from = root.table("init").find_path(
          "from", {.must_exist = true,
                   .doc = "run or checkpoint directory whose weights training starts from"}))
    recipe.init_from = *from;
  recipe.model = detail::read_model(root.table("model"));
  recipe.lora = detail::read_lora(root.table("lora"), recipe.model);
  detail::read_machine(root, recipe);
  detail::read_data_access(root, recipe);
  recipe.metrics = detail::read_metric_schedule(root.table("metrics"));
  recipe.loss = detail::read_loss(root, recipe.model, {});
  if (recipe.model.diffusion()) {
    recipe.diffusion = detail::read_diffusion(root.table("diffusion"));
    recipe.sample = detail::read_sample(root.table("sample"), recipe.diffusion);
    recipe.validation = detail::read_validation(root.table("validation"));
  }
  if (recipe.model.family == "vae")
    recipe.reconstruction = detail::read_reconstruction(root.table("reconstruction"));
  if (recipe.model.bucketed()) recipe.ema = detail::read_ema(root.table("ema"));
  for (const ConfigTable& stage : root.array_of_tables("stage"))
    recipe.stages.push_back(detail::read_stage(stage, recipe));
  check_stage_names(root, recipe.stages);
  root.finish();
  recipe.resolved = document.to_toml();
  recipe.reference = reference_markdown(document.reference());
  return recipe;
}

constexpr const char* kTextPadding = "model.text_padding";

/// What the diffusion families add to the contract.
static void add_diffusion(const Recipe& r, Json& json) {
  const auto& t = r.model.transformer;
  const auto& e = r.model.text_encoder;
  const DiffusionRecipe& d = r.diffusion;
  json["model.family"] = r.model.family;
  json["model.transformer"] = {t.hidden,    t.layers,  t.heads,       t.patch,
                               t.grid_side, t.qk_norm, t.time_divisor};
  // Absent by default, as below: states of before the keys go on.
  if (t.position_scale != 1 || t.size_embedders || !t.dual_layers.empty())
    json["model.transformer_variants"] = {t.position_scale, t.size_embedders, t.dual_layers};
  json["model.text_encoder"] = {e.hidden, e.layers, e.heads, e.max_tokens};
  json["diffusion"] = {d.predict,       d.noise_schedule, d.time_steps,  d.learned_sigma,
                       d.min_snr_gamma, d.time_draw,      d.loss_weight, d.shift,
                       d.label_drop,    d.normalisation};
  // Absent by default: states of before the key go on.
  if (!d.encoder_drop.empty()) json["diffusion.encoder_drop"] = d.encoder_drop;
  const DiffusionRecipe usual;
  if (d.shift_patches != usual.shift_patches || d.time_mean != usual.time_mean ||
      d.time_deviation != usual.time_deviation || d.time_mode_scale != usual.time_mode_scale ||
      d.time_table)
    json["diffusion.times"] = {d.shift_patches, d.time_mean, d.time_deviation, d.time_mode_scale,
                               d.time_table};
  json["ema"] = {r.ema.decay, r.ema.warmup, r.ema.power};
  // Encoders that work on the way are a part of the data.
  const bool online =
      std::ranges::any_of(r.stages, [](const StageRecipe& stage) { return stage.encoded.empty(); });
  if (online && !r.model.vae.empty()) json["model.vae"] = r.model.vae.string();
  if (r.model.text_models.empty()) return;
  // Latents may be stored and captions not: whether a stage has text of its own only its set knows.
  json[kTextPadding] = r.model.text_padding;
  if (!online) return;
  for (const auto& text : r.model.text_models) json["model.text_models"].push_back(text.string());
}

static void add_autoencoder(const Recipe& r, Json& json) {
  const ModelRecipe::Autoencoder& a = r.model.autoencoder;
  json["model.family"] = r.model.family;
  json["model.autoencoder"] = {a.channels, a.latent_channels, a.layers, a.groups, a.scaling_factor};
  json["reconstruction"] = {r.reconstruction.error, r.reconstruction.kl_weight};
  json["ema"] = {r.ema.decay, r.ema.warmup, r.ema.power};
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
  // Absent by default: states of before these keys go on.
  const bool tiles_or_sizes =
      r.model.family.starts_with("llava_") || r.model.family == "qwen2_5_vl";
  if (r.model.from.empty() && (v.kind != "clip" || l.kind != "llama" || tiles_or_sizes))
    json["model.kinds"] = {r.model.family, v.kind,        v.grids, v.max_grid_tiles, v.merge,
                           v.window,       v.full_layers, l.kind,  l.rope_sections};
  if (r.model.projector == "linear") json["model.projector"] = r.model.projector;
  if (r.lora.on())
    json["lora"] = {{"rank", r.lora.rank}, {"alpha", r.lora.alpha}, {"targets", r.lora.targets}};
  if (r.lora.on() && r.lora.dropout > 0) json["lora"]["dropout"] = r.lora.dropout;
  if (r.model.vocab_rows != 0 || r.model.vocab_multiple != 1)
    json["model.vocab"] = {r.model.vocab_rows, r.model.vocab_multiple};
  if (r.model.diffusion()) add_diffusion(r, json);
  if (r.model.family == "vae") add_autoencoder(r, json);
  for (size_t i = 0; i < r.stages.size(); ++i) {
    const StageRecipe& s = r.stages[i];
    const std::string prefix = fmt::format("stage.{}.", i);
    json[prefix + "steps"] = s.steps;
    json[prefix + "train"] = s.train;
    // Absent by default: states of before the key go on.
    if (s.loss != LossRecipe{}) json[prefix + "loss"] = {s.loss.reduction, s.loss.micro_packs};
    if (s.optimizer != "adamw") json[prefix + "optimizer"] = s.optimizer;
    if (s.oversize != "refuse" || s.max_attention_pairs != 0 || s.image_cost != 0)
      json[prefix + "plan"] = {s.oversize, s.max_attention_pairs, s.image_cost};
    if (!s.encoded.empty()) json[prefix + "encoded"] = true;
    if (s.packing == "buckets") json[prefix + "buckets"] = {s.batch_pixels, s.leftovers};
    json[prefix + "batch"] = {s.sequence_length, s.packs_per_step, s.max_images, s.packing};
  }
  return json;
}

static bool all_encoded(const Json& contract) {
  size_t stages = 0, encoded = 0;
  for (const auto& [key, value] : contract.items()) {
    if (!key.starts_with("stage.")) continue;
    stages += key.ends_with(".steps") ? 1 : 0;
    encoded += key.ends_with(".encoded") ? 1 : 0;
  }
  return stages == encoded;
}

/// Keys that a recipe could once give without effect, of the families that have no use for them.
static void take_unused(const Json& saved, Json& now) {
  if (!now.contains("model.family")) return;
  for (const char* key : {"lora", "model.vocab"}) {
    if (saved.contains(key)) now[key] = saved.at(key);
  }
  if (!now.contains("diffusion") || !saved.contains("diffusion")) return;
  Json& objective = now["diffusion"];
  const Json& was = saved.at("diffusion");
  // In the order of add_diffusion: of flows the schedule, of the others times, weight and shift.
  const std::vector<size_t> unused =
      objective.at(0) == "flow" ? std::vector<size_t>{1} : std::vector<size_t>{5, 6, 7};
  if (!was.is_array() || was.size() != objective.size()) return;
  for (const size_t i : unused) objective.at(i) = was.at(i);
}

Json contract_known_to(const Json& saved, Json now) {
  take_unused(saved, now);
  if (!saved.contains(kTextPadding)) {
    now.erase(kTextPadding);
  } else if (!now.contains(kTextPadding) && all_encoded(now)) {
    // Its text_model was for drawing; what is stored says by which text it was made.
    now[kTextPadding] = saved.at(kTextPadding);
  }
  return now;
}

Json without_loss(const Json& contract) {
  Json rest = Json::object();
  for (const auto& [key, value] : contract.items()) {
    if (!(key.starts_with("stage.") && key.ends_with(".loss"))) rest[key] = value;
  }
  return rest;
}

}  // namespace mm::run