#include "lib/run/recipe_tables.h"

namespace mm::run::detail {

void read_machine(ConfigTable root, Recipe& recipe) {
  ConfigTable precision = root.table("precision");
  recipe.compute = precision.get_enum(
      "compute",
      {.words = {"auto", "fp32", "bf16", "float64"},
       .def = "auto",
       .doc = "dtype of forward and backward; auto: bf16 where the CPU multiplies it fast, else "
              "fp32. Masters, moments and sums are fp32 (float64 in float64 runs)"});
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
