#include "lib/run/import_dialects.h"

// LLaVA's --lora_* arguments: adapters on every linear layer of the language model, its head apart.
namespace mm::run::detail {
namespace {

constexpr const char* kFlags[] = {"lora_enable",  "lora_r",    "lora_alpha",
                                  "lora_dropout", "lora_bias", "lora_weight_path"};

void leave_flags(ImportContext& c, const char* reason) {
  for (const char* flag : kFlags) c.needless(flag, reason);
}

void map_dropout(ImportContext& c) {
  constexpr double kDefault = 0.05, kMost = 0.99;
  const double dropout = c.number("lora_dropout", 0, kMost).value_or(kDefault);
  c.set("lora.dropout", toml_text(dropout), {"lora_dropout"},
        c.given("lora_dropout") ? "" : "LLaVA's default");
}

void map_start(ImportContext& c) {
  constexpr const char* kFlag = "lora_weight_path";
  if (c.shown(kFlag).empty()) return c.needless(kFlag, "empty: adapters start at zero");
  const auto from = c.text(kFlag);
  if (!from) return;
  c.set("lora.from", toml_text(*from), {kFlag}, "an adapter directory in PEFT's layout");
  c.report.notes.push_back(
      "lora_weight_path: LLaVA's own trainer takes the flag and starts adapters at zero all the "
      "same; without lora.from so does this recipe");
}

}  // namespace

void map_llava_lora(ImportContext& c) {
  if (!c.truth("lora_enable")) return leave_flags(c, "the run has no adapters");
  if (!c.draft.get("stage.lr.language"))
    return leave_flags(c, "the language model is frozen, so adapters would stay zero");
  c.set("lora.rank", toml_text(c.integer("lora_r", 1, 8192).value_or(64)), {"lora_r"});
  c.set("lora.alpha", toml_text(c.number("lora_alpha", 0, 1e6).value_or(16)), {"lora_alpha"});
  map_dropout(c);
  c.set("lora.language", toml_text(std::vector<std::string>{"*"}), {"lora_enable"},
        "all linear layers but the head; their own weights are frozen");
  if (c.shown("lora_bias") == "none") c.needless("lora_bias", "as here: biases are frozen");
  c.lose("lora_bias", "biases of layers with an adapter are frozen");
  map_start(c);
  if (c.given("mm_tunable_parts"))
    c.report.notes.push_back("mm_tunable_parts: of the language model adapters alone are trained");
}

}  // namespace mm::run::detail
