#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

void read_part_precision(ConfigTable& precision, Recipe& recipe) {
  for (const std::string& part : recipe.model.parts()) {
    const std::string word =
        precision.get_enum(part, {.words = {"compute", "fp32", "bf16", "fp16"},
                                  .def = "compute",
                                  .doc = "dtype of this part, compute: as the key of that name"});
    if (word == "compute" || word == recipe.compute) continue;
    if (recipe.compute == "float64")
      precision.fail(part, "a float64 run counts everything in float64; leave this key out");
    recipe.part_compute[part] = word;
  }
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

/// The parts' dtypes have been read.
void read_loss_scale(ConfigTable& precision, Recipe& recipe) {
  recipe.loss_scale = precision.get_double(
      "loss_scale", {.def = 65536.0,
                     .min = 1e-7,
                     .max = 1e30,
                     .doc = "fp16: what the loss is multiplied by to begin with, a power of two; "
                            "halved when a gradient overflows, and the update left out; an "
                            "overflow at 2^-24 ends the run"});
  recipe.loss_scale_growth_steps = precision.get_int(
      "loss_scale_growth_steps",
      {.def = 2000, .min = 0, .doc = "fp16: updates without an overflow before the scale doubles"});
  const bool fp16 = recipe.compute == "fp16" ||
                    std::ranges::any_of(recipe.part_compute,
                                        [](const auto& part) { return part.second == "fp16"; });
  if (!fp16)
    return precision.refuse_unused({"loss_scale", "loss_scale_growth_steps"},
                                   "where nothing is computed in fp16; leave it out");
  if (!is_power_of_two(recipe.loss_scale))
    precision.fail("loss_scale",
                   fmt::format("{} is no power of two; expected one, such as {}", recipe.loss_scale,
                               std::exp2(std::round(std::log2(recipe.loss_scale)))));
}

RecomputeRecipe read_recompute(ConfigTable t, const ModelRecipe& model) {
  RecomputeRecipe recompute;
  recompute.mode = t.get_enum(
      "mode", {.words = {"none", "block", "selective"},
               .def = "none",
               .doc = "what the backward runs again instead of keeping it: nothing, whole trained "
                      "blocks (their inputs are kept), or the pieces of layers below; "
                      "results are the same to the bit"});
  recompute.pieces = t.get_string_list("pieces", {.def = std::vector<std::string>{"mlp"},
                                                  .min_count = 1,
                                                  .doc = "selective: attention, mlp, or both"});
  for (const std::string& piece : recompute.pieces) {
    if (piece != "attention" && piece != "mlp")
      t.fail("pieces", fmt::format("unknown piece \"{}\"; expected attention or mlp", piece));
  }
  const bool selective = recompute.mode == "selective";
  if (selective && model.bucketed())
    t.refuse_unused({"mode"}, "in family " + model.family +
                                  ", whose blocks have no pieces; take block or none");
  if (!selective)
    t.refuse_unused({"pieces"}, "with mode = \"" + recompute.mode +
                                    "\"; set mode = \"selective\", or leave it out");
  return recompute;
}

}  // namespace

void read_machine(ConfigTable root, Recipe& recipe) {
  ConfigTable precision = root.table("precision");
  recipe.compute = precision.get_enum(
      "compute",
      {.words = {"auto", "fp32", "bf16", "fp16", "float64"},
       .def = "auto",
       .doc = "dtype of forward and backward; auto: bf16 where the CPU multiplies it fast, else "
              "fp32. Masters, moments and sums are fp32 (float64 in float64 runs)"});
  read_part_precision(precision, recipe);
  read_loss_scale(precision, recipe);
  recipe.recompute = read_recompute(root.table("recompute"), recipe.model);
  ConfigTable frozen = root.table("frozen");
  recipe.frozen_pictures_at_once = frozen.get_int(
      "pictures_at_once", {.def = 0,
                           .min = 0,
                           .max = 1 << 20,
                           .doc = "pictures that a frozen tower or autoencoder takes at once, 0: "
                                  "all of a micro-batch; pictures of any size (Qwen-VL) are not "
                                  "cut"});
  if (recipe.model.diffusion())
    recipe.frozen_captions_at_once = frozen.get_int(
        "captions_at_once", {.def = 0,
                             .min = 0,
                             .max = 1 << 20,
                             .doc = "diffusion: captions that frozen text models take at once, 0: "
                                    "all of a micro-batch"});
  recipe.frozen_ahead = frozen.get_bool(
      "ahead", {.def = false,
                .doc = "frozen blocks in front of the language model run one step ahead, beside "
                       "the step before; costs their features of one step in memory"});
  ConfigTable comm = root.table("comm");
  recipe.backend = comm.get_enum(
      "backend", {.words = {"gloo"}, .def = "gloo", .doc = "collectives between ranks"});
  recipe.comm_timeout_s = comm.get_double(
      "timeout_s",
      {.def = 60.0, .min = 0.1, .max = 86400, .doc = "deadline of every collective, seconds"});
  recipe.bucket_mib = comm.get_int(
      "bucket_mib", {.def = 4, .min = 1, .max = 4096, .doc = "size of a gradient bucket, MiB"});
  ConfigTable checkpoint = root.table("checkpoint");
  recipe.checkpoint_every = checkpoint.get_int(
      "every_steps", {.def = 0,
                      .min = 0,
                      .max = int64_t{1} << 40,
                      .doc = "steps between saves, 0: only at the end of a stage"});
  recipe.checkpoint_keep = checkpoint.get_int(
      "keep_last", {.def = 2, .min = 2, .max = 1 << 20, .doc = "committed checkpoints to keep"});
  ConfigTable loader = root.table("loader");
  recipe.loader_threads =
      loader.get_int("threads", {.def = 1, .min = 1, .max = 256, .doc = "prefetch threads a rank"});
  recipe.loader_prefetch =
      loader.get_int("prefetch", {.def = 4, .min = 1, .max = 4096, .doc = "steps read ahead"});
  recipe.bad_sample_limit = loader.get_double(
      "bad_sample_limit",
      {.def = 0.001,
       .min = 0,
       .max = 1,
       .doc = "share of samples that may fail at read time; above it the run ends"});
}

void read_data_access(ConfigTable root, Recipe& recipe) {
  ConfigTable loader = root.table("loader");
  recipe.loader_max_threads =
      loader.get_int("max_threads", {.def = 0,
                                     .min = 0,
                                     .max = 256,
                                     .doc = "threads may grow to so many while steps are waited "
                                            "for; 0: they stay"});
  recipe.loader_max_prefetch =
      loader.get_int("max_prefetch", {.def = 0,
                                      .min = 0,
                                      .max = 4096,
                                      .doc = "steps read ahead may grow to so many while steps "
                                             "are waited for; 0: they stay"});
  recipe.loader_verify = loader.get_enum(
      "verify",
      {.words = {"every", "first"},
       .def = "every",
       .doc = "when a sample's checksum is compared: at every read (of raw pictures while "
              "they are copied, which costs next to nothing), or at its first read by "
              "this process (later damage is not seen)"});
  recipe.loader_memory_mib =
      loader.get_int("memory_mib", {.def = 0,
                                    .min = 0,
                                    .max = int64_t{1} << 30,
                                    .doc = "MiB a rank for steps read ahead, 0: no limit"});
  ConfigTable data = root.table("data");
  if (const auto directory = data.find_path(
          "cache_dir",
          {.doc = "folder of its own on a disk of the node for copies of shards, fetched in the "
                  "order of the plan"}))
    recipe.cache_dir = *directory;
  recipe.cache_bytes = data.get_int(
      "cache_bytes", {.def = int64_t{64} << 30,
                      .min = 1,
                      .doc = "bytes of cache_dir, for all processes of the node together"});
  recipe.cache_memory_bytes = data.get_int(
      "cache_memory_bytes", {.def = 0,
                             .min = 0,
                             .doc = "bytes of memory (/dev/shm) for copies of shards, for all "
                                    "processes of the node together; 0: none"});
}

}  // namespace mm::run::detail
