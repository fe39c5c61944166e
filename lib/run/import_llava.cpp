#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/toml_text.h"
#include "lib/run/import_deepspeed.h"
#include "lib/run/import_dialects.h"

namespace mm::run::detail {
namespace {

struct TemplateName {
  std::string_view version, name;
};
// --version of LLaVA and LLaVA-NeXT -> --template of mmshard pack, where both give the same tokens.
constexpr TemplateName kTemplates[] = {
    {"plain", "plain"},        {"v1", "vicuna_v1"},         {"vicuna_v1", "vicuna_v1"},
    {"llava_v1", "vicuna_v1"}, {"llava_llama_3", "llama3"}, {"llama_3", "llama3"},
    {"qwen_1_5", "chatml"},    {"qwen_2", "chatml"},        {"chatml_direct", "chatml"}};

/// The parts that the run trains, in the order of kParts.
std::vector<std::string> trained_parts(ImportContext& c) {
  std::vector<std::string> parts;
  const auto has = [&](std::string_view word, const std::string& list) {
    return list.find(word) != std::string::npos;
  };
  if (const auto list = c.text("mm_tunable_parts")) {
    if (has("vision_tower", *list)) parts.emplace_back("vision");
    if (has("mlp_adapter", *list)) parts.emplace_back("projector");
    if (has("language_model", *list)) parts.emplace_back("language");
    if (parts.empty())
      c.fail("mm_tunable_parts", "mm_vision_tower, mm_mlp_adapter, mm_language_model");
    return parts;
  }
  const bool adapter_only = c.truth("tune_mm_mlp_adapter");
  if (c.truth("unfreeze_mm_vision_tower")) parts.emplace_back("vision");
  if (!c.truth("freeze_mm_mlp_adapter")) parts.emplace_back("projector");
  // Adapters are added behind the freezing, so that they are trained all the same.
  if (!adapter_only && (!c.truth("freeze_backbone") || c.truth("lora_enable")))
    parts.emplace_back("language");
  if (parts.empty()) c.fail("freeze_backbone", "something that is left to train");
  return parts;
}

void map_parts(ImportContext& c) {
  const std::vector<std::string> parts = trained_parts(c);
  c.set("stage.train", toml_text(parts),
        {"mm_tunable_parts", "tune_mm_mlp_adapter", "unfreeze_mm_vision_tower",
         "freeze_mm_mlp_adapter", "freeze_backbone"});
  const auto trained = [&](const char* part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  const double base = c.number("learning_rate", 0, 10).value_or(5e-5);
  const double projector = c.number("mm_projector_lr", 0, 10).value_or(base);
  const double vision = c.number("mm_vision_tower_lr", 0, 10).value_or(base);
  if (trained("vision")) c.set("stage.lr.vision", toml_text(vision), {"mm_vision_tower_lr"});
  if (trained("projector")) c.set("stage.lr.projector", toml_text(projector), {"mm_projector_lr"});
  if (trained("language")) c.set("stage.lr.language", toml_text(base), {});
  c.map({"learning_rate"}, "stage.lr", toml_text(base));
  c.needless("mm_vision_tower_lr", "the tower is frozen");
  c.needless("mm_projector_lr", "the projector is frozen");
}

/// Where the weights come from: one directory holds tower, projector and language model.
void map_model(ImportContext& c) {
  const auto model = c.text("model_name_or_path");
  if (!model) {
    // Without the key a run would start from scratch; a directory that is not there is refused.
    constexpr const char* kReason = "the run names no model that is known here";
    c.draft.set("model.from", toml_word("MODEL"), kReason);
    c.report.missing.push_back({"model.from", kReason});
    return;
  }
  std::string remark = "a directory";
  const std::string tower = c.shown("vision_tower"), projector = c.shown("pretrain_mm_mlp_adapter");
  if (!tower.empty()) remark += " in LLaVA's form, with the tower of " + tower;
  if (!projector.empty()) remark += " and the projector of " + projector;
  c.set("model.from", toml_text(*model), {"model_name_or_path"}, remark);
  for (const char* flag : {"vision_tower", "pretrain_mm_mlp_adapter"}) {
    if (c.text(flag)) c.map({flag}, "model.from", "in that directory");
  }
}

void map_projector(ImportContext& c) {
  if (c.given("vision_tower") && !c.given("mm_projector_type"))
    c.report.notes.emplace_back(
        "no --mm_projector_type: LLaVA's new projectors are then linear; model.projector has that "
        "word, left out it is as config.json of model.from says");
  const auto kind = c.text("mm_projector_type");
  if (kind == "linear" || kind == "mlp2x_gelu")
    c.set("model.projector", toml_text(*kind), {"mm_projector_type"});
  c.lose("mm_projector_type", "projectors here are linear or mlp2x_gelu (model.projector)");
}

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

/// The numbers of "[(336, 672), (672, 336)]" or "(1x1),...,(6x6)" in twos; nothing for other text.
std::optional<Pairs> read_pairs(const std::string& text) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < text.size();) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    if (error == std::errc() && value > 0 && value < 1 << 20 && numbers.size() < 4096) {
      numbers.push_back(value);
      i = static_cast<size_t>(end - text.data());
    } else if (std::string_view("[]() ,x.").find(text[i++]) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  if (numbers.empty() || numbers.size() % 2 != 0) return std::nullopt;
  Pairs pairs;
  for (size_t i = 0; i < numbers.size(); i += 2) pairs.emplace_back(numbers[i], numbers[i + 1]);
  return pairs;
}

/// Sizes in pixels, or a range of tiles, as --grids takes them: rows x columns. LLaVA reads a size
/// width first, config.json height first; lists that hold both turns of each size keep their order,
/// so that they are those of config.json.
std::string grids_of(const std::string& pinpoints, int64_t side) {
  auto pairs = read_pairs(pinpoints);
  if (!pairs) return "";
  if (pinpoints.find("...") != std::string::npos) {
    if (pairs->size() != 2 || (*pairs)[1].first > 16 || (*pairs)[1].second > 16) return "";
    const auto [first, last] = std::pair((*pairs)[0], (*pairs)[1]);
    pairs->clear();
    for (int64_t a = first.first; a <= last.first; ++a) {
      for (int64_t b = first.second; b <= last.second; ++b) pairs->emplace_back(a, b);
    }
    side = 1;
  }
  const bool both_turns = std::all_of(pairs->begin(), pairs->end(), [&](const auto& p) {
    return std::find(pairs->begin(), pairs->end(), std::pair(p.second, p.first)) != pairs->end();
  });
  std::string out;
  for (auto [rows, columns] : *pairs) {
    if (!both_turns) std::swap(rows, columns);
    if (side <= 0 || rows % side != 0 || columns % side != 0) return "";
    out += fmt::format("{}{}x{}", out.empty() ? "" : ",", rows / side, columns / side);
  }
  return out;
}

/// "anyres_max_9": features of more than 9 tiles are scaled down to them.
int64_t most_tiles(const std::string& ratio) {
  constexpr std::string_view kPrefix = "anyres_max_";
  int64_t most = 0;
  if (!ratio.starts_with(kPrefix)) return 0;
  const char* end = ratio.data() + ratio.size();
  const auto [at, error] = std::from_chars(ratio.data() + kPrefix.size(), end, most);
  return error == std::errc() && at == end && most > 0 && most <= 1024 ? most : 0;
}

void map_geometry(ImportContext& c, PackCommand& pack) {
  const std::string ratio = c.text("image_aspect_ratio").value_or("square");
  pack.max_grid_tiles = most_tiles(ratio);
  const bool siglip = c.shown("vision_tower").find("siglip") != std::string::npos;
  if (ratio == "square") pack.geometry = siglip ? "squash" : "crop";
  if (ratio == "pad") pack.geometry = "pad";
  if (ratio == "anyres" || pack.max_grid_tiles > 0) pack.geometry = "anyres";
  if (ratio == "square" || ratio == "pad" || pack.geometry == "anyres")
    c.map({"image_aspect_ratio"}, "mmshard pack --geometry",
          pack.max_grid_tiles == 0
              ? pack.geometry
              : fmt::format("anyres --max-grid-tiles {}", pack.max_grid_tiles));
  c.lose("image_aspect_ratio", "no such geometry: the command above has crop");
  const auto points = c.text("image_grid_pinpoints");
  if (!points) return;
  if (pack.geometry != "anyres")
    return c.needless("image_grid_pinpoints", "pictures are not tiled");
  pack.grids = grids_of(*points, pack.image_side);
  if (!pack.grids.empty()) c.map({"image_grid_pinpoints"}, "mmshard pack --grids", pack.grids);
  c.lose("image_grid_pinpoints", "expected sizes that are whole tiles; --grids keeps its default");
}

void map_data(ImportContext& c, PackCommand& pack) {
  set_data(c, pack);
  pack.image_root = c.text("image_folder").value_or("");
  pack.tokenizer = c.text("model_name_or_path").value_or("MODEL") + "/tokenizer.model";
  c.map({"image_folder"}, "mmshard pack --image-root", pack.image_root);
  const TowerName tower = read_tower_name(c.shown("vision_tower"));
  pack.image_side = tower.image_side;
  pack.patch = tower.patch;
  if (tower.patch == 0 && c.given("vision_tower"))
    c.report.notes.push_back(
        "the tower's name says neither side nor patch of its pictures; give "
        "mmshard pack --image-side and --patch");
  const std::string version = c.text("version").value_or("v0");
  for (const TemplateName& row : kTemplates) {
    if (row.version == version) pack.chat_template = row.name;
  }
  if (!pack.chat_template.empty())
    c.map({"version"}, "mmshard pack --template", pack.chat_template);
  c.lose("version", "no template of that name here; write it as a TOML file for --template");
  pack.max_length = c.integer("model_max_length", 2, 1 << 24).value_or(512);
  c.set("stage.sequence_length", toml_text(pack.max_length), {"model_max_length"});
  map_geometry(c, pack);
}

std::string stage_name(ImportContext& c) {
  if (c.truth("lora_enable")) return "lora";
  return c.truth("tune_mm_mlp_adapter") ? "pretrain" : "finetune";
}

}  // namespace

void set_data(ImportContext& c, PackCommand& pack) {
  pack.source = c.text("data_path").value_or(base_name(c.shown("data_path")));
  pack.out = packed_name(pack.source);
  // A directory that is not there is refused, as with model.from.
  constexpr const char* kReason = "the run names no data (--data_path)";
  const bool named = c.given("data_path");
  if (!named) c.report.missing.push_back({"stage.data", kReason});
  c.set("stage.data", toml_text(pack.out), {}, named ? "packed by the command above" : kReason);
  c.map({"data_path"}, "mmshard pack", pack.source);
}

void map_llava(ImportContext& c, const std::filesystem::path& script, PackCommand& pack) {
  add_deepspeed(c, script);
  c.draft.set("stage.name", toml_text(stage_name(c)));
  map_model(c);
  map_projector(c);
  map_data(c, pack);
  map_parts(c);
  map_llava_lora(c);
  const int64_t world = map_hf_trainer(c);
  const std::string run = c.text("output_dir").value_or("runs/" + stage_name(c));
  c.map({"output_dir"}, "mmtrain run --run", run);
  c.report.commands.push_back(fmt::format("mmtrain launch --nproc {} -- run {} --run {}",
                                          std::max<int64_t>(world, 1),
                                          shell_quoted(c.options.recipe), shell_quoted(run)));
}

}  // namespace mm::run::detail
