#include "lib/run/recipe_tables.h"

namespace mm::run::detail {

LoraRecipe read_lora(ConfigTable t, const ModelRecipe& model) {
  LoraRecipe lora;
  lora.rank =
      t.get_int("rank", {.def = 0,
                         .min = 0,
                         .max = 8192,
                         .doc = "rank of the adapters; the parts that have some train these "
                                "alone. 0: no adapters"});
  lora.alpha = t.get_double(
      "alpha", {.def = 2.0 * static_cast<double>(lora.rank),
                .min = 0,
                .max = 1e6,
                .doc = "an adapter adds alpha / rank x B A to its weight (default: 2 x rank)"});
  lora.dropout = t.get_double(
      "dropout", {.def = 0.0,
                  .min = 0,
                  .max = 0.99,
                  .doc = "share of an adapter's inputs that training drops, by draws of its own; "
                         "0.05 in published LLaVA"});
  for (const std::string& part : kParts) {
    const std::vector<std::string> def =
        part == "language" ? std::vector<std::string>{"*"} : std::vector<std::string>{};
    const auto targets = t.get_string_list(
        part,
        {.def = def,
         .doc = "linear layers of the " + part +
                " part with an adapter: ends of module names such as q_proj, or patterns with "
                "*; none: the part trains whole"});
    if (lora.on() && !targets.empty()) lora.targets[part] = targets;
  }
  if (model.bucketed())
    t.refuse_unused({"rank", "alpha", "dropout", "vision", "projector", "language"},
                    "in family " + model.family + ", which has no adapters; leave [lora] out");
  if (!lora.on())
    t.refuse_unused({"alpha", "dropout", "vision", "projector", "language"},
                    "without lora.rank: all weights would train; set lora.rank, or leave it out");
  if (const auto from = t.find_path(
          "from",
          {.must_exist = true,
           .doc = "adapter directory in PEFT's layout whose values training starts from"})) {
    lora.from = *from;
    if (!lora.on()) t.fail("from", "adapters need lora.rank");
  }
  if (lora.on() && lora.targets.empty()) t.fail("rank", "no part has a target; set lora.language");
  return lora;
}

}  // namespace mm::run::detail
