#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/model/generate.h"
#include "lib/model/llava.h"
#include "lib/model/norms.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/gradient_checks.h"
#include "tools/mm_oracle/kinds.h"
#include "tools/mm_oracle/llava_case.h"
#include "tools/mm_oracle/llava_training.h"
#include "tools/mm_oracle/picture_inputs.h"

namespace mm::oracle {
namespace {

constexpr double kTensorTolerance = 1e-5, kElementTolerance = 2e-5, kLossTolerance = 2e-6;

void check_tensor(Report& report, const std::string& name, const at::Tensor& got,
                  const at::Tensor& want) {
  report.number(name, relative_error(got, want), kTensorTolerance, "rel");
  report.number(name + " (largest element)", largest_error(got, want), kElementTolerance, "max");
}

// Rows of a padded [batch, token, ...] tensor that the mask keeps.
at::Tensor kept(const LlavaCase& c, const at::Tensor& padded) {
  return padded.flatten(0, 1).index_select(0, c.kept_rows);
}

// Tokens of each picture, its grid of tiles, and where patches stand.
void check_picture_sizes(Folder& folder, const LlavaCase& c, Report& report) {
  Json tokens = Json::array(), grids = Json::array();
  for (const model::PictureShape& picture : c.batch.pictures) {
    tokens.push_back(picture.tokens);
    grids.push_back({picture.rows, picture.columns});
  }
  report.exact("image_tokens", folder.take("image_tokens") == tokens, tokens.dump() + " here");
  if (c.loaded.config.has_tiles())
    report.exact("tile_grids", folder.take("tile_grids") == grids, grids.dump() + " here");
  if (!c.batch.axis_positions.defined()) return;
  const at::Tensor want = folder.tensor("position_ids").flatten(1).index_select(1, c.kept_rows);
  report.exact("position_ids", at::equal(want, c.batch.axis_positions), "others here");
}

// The most likely tokens behind the first sample's prompt.
void check_greedy(Folder& folder, const LlavaCase& c, Report& report) {
  if (!folder.has("greedy")) return;
  const Json& greedy = folder.take("greedy");
  const auto want = greedy.at("tokens").get<std::vector<int64_t>>();
  const model::SimpleParams params = c.params(std::vector<bool>(c.loaded.values.size(), false));
  const auto got = model::generate_greedy(
      c.loaded.model, params, first_tokens(c.batch, greedy.at("prompt"), c.loaded.config),
      {.max_new_tokens = static_cast<int64_t>(want.size()),
       .banned_tokens = {c.loaded.config.image_token_index}});
  report.exact("greedy/tokens", got.front() == want, Json(got.front()).dump() + " here");
}

void check_settings(Folder& folder, const LlavaCase& c, Report& report) {
  const model::LlavaConfig& config = c.loaded.config;
  const auto same = [&](const std::string& path, double got) {
    const double want = folder.number(path);
    report.exact(path, got == want, fmt::format("{} here, {} there", got, want));
  };
  same("image_token_id", static_cast<double>(config.image_token_index));
  if (config.varied_pictures()) {
    check_picture_sizes(folder, c, report);
  } else {
    same("image_tokens_per_image", static_cast<double>(config.patches_per_image()));
  }
  same("supervised_tokens", c.targets);
  report.exact("tied_embeddings", folder.take("tied_embeddings") == Json(config.text.tied_head),
               "the configuration says otherwise");
  const auto v4 = folder.directory() / "config_v4.json";
  if (std::filesystem::exists(v4)) {
    report.exact("config_v4.json", to_json(model::read_llava_config(v4)) == to_json(config),
                 "not the same as config.json");
  }
}

// The decoder's last norm, whatever stands before its name.
size_t final_norm(const model::Model& m) {
  const auto it = std::ranges::find_if(m.params, [](const model::ParamSpec& spec) {
    return spec.name.ends_with("model.norm.weight");
  });
  return static_cast<size_t>(it - m.params.begin());
}

void check_forward(Folder& folder, const LlavaCase& c, const model::SlotValues& slots,
                   Report& report) {
  const model::Model& m = c.loaded.model;
  const at::Tensor features = slots[model::find_slot(m, "features")];
  const at::Tensor want = folder.tensor("image_features");
  check_tensor(report, "image_features", features, want.dim() == 3 ? want.flatten(0, 1) : want);
  const model::TextConfig& text = c.loaded.config.text;
  const at::Tensor last = slots[model::find_slot(m, "hidden." + std::to_string(text.layers))];
  const at::Tensor norm = c.loaded.values[final_norm(m)];
  check_tensor(report, "final_hidden", model::rms_norm(last, norm.to(c.dtype), text.norm_eps),
               kept(c, folder.tensor("final_hidden")));
  const at::Tensor logits = slots[m.logits_slot];
  check_tensor(report, "logits", logits, kept(c, folder.tensor("logits")));
  const double spread = logits.to(at::kDouble).std().item<double>();
  report.number("logits_std", relative_error(spread, folder.number("logits_std")), kTensorTolerance,
                "rel");
}

void check_declarations(Folder& folder, const LlavaCase& c, Report& report) {
  std::set<std::string> no_decay, unused;
  const auto used = model::params_in_use(c.loaded.model);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!c.loaded.model.params[i].decay) no_decay.insert(c.name(static_cast<int>(i)));
    if (!used[i]) unused.insert(c.name(static_cast<int>(i)));
  }
  check_names(report, "optimizer/no_decay", no_decay, folder.words("optimizer/no_decay"));
  check_names(report, "params_without_gradient", unused, folder.words("params_without_gradient"));
}

double check_step(Folder& folder, const LlavaCase& c, const std::set<std::string>& null_params,
                  Report& report) {
  const auto trainable = c.all_trainable();
  model::SimpleParams params = c.params(trainable);
  const model::EagerStep step{c.loaded.model, params, trainable, params, 1.0 / c.targets};
  const model::SlotValues slots = model::eager_train(step, c.batch);
  const double loss = slots[c.loaded.model.loss_slot].item<double>() / c.targets;
  if (c.dtype != at::kFloat) return loss;
  check_forward(folder, c, slots, report);
  check_gradients(folder, {}, gradients_of(c.loaded.model, params), null_params, report);
  return loss;
}

// The same weights read at the tower's last layer, where a folder has that too.
void check_last_layer(Folder& folder, const LlavaCase& c, Report& report) {
  const char* name = "image_features_layer_minus_1";
  if (!folder.has_tensor(name)) return;
  LlavaCase last = c;
  last.loaded.config.vision_feature_layer = -1;
  last.loaded.model = model::build_llava(last.loaded.config);
  const model::SimpleParams params =
      last.params(std::vector<bool>(last.loaded.values.size(), false));
  const model::SlotValues slots = model::eager_forward(last.loaded.model, params, last.batch);
  check_tensor(report, name, slots[model::find_slot(last.loaded.model, "features")],
               folder.tensor(name).flatten(0, 1));
}

}  // namespace

void check_llava(Folder& folder, Report& report) {
  folder.set_aside({"seed", "shape", "measured", "gradients/measured_worst_rel_l2_vs_float64"});
  const auto null_params = folder.words("gradients/null_grad_params");
  const LlavaCase single = read_llava_case(folder, at::kFloat);
  check_settings(folder, single, report);
  check_declarations(folder, single, report);
  check_last_layer(folder, single, report);
  check_greedy(folder, single, report);
  const double loss = check_step(folder, single, null_params, report);
  report.number("loss", relative_error(loss, folder.number("loss")), kLossTolerance, "rel");
  const double wide = check_step(folder, read_llava_case(folder, at::kDouble), null_params, report);
  report.number("loss_float64", relative_error(wide, folder.number("loss_float64")), kLossTolerance,
                "rel");
  check_training(folder, null_params, report);
}

}  // namespace mm::oracle
