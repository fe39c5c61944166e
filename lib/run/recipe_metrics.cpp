#include "lib/run/recipe_tables.h"

namespace mm::run::detail {

MetricSchedule read_metric_schedule(ConfigTable table) {
  ConfigTable every = table.table("every");
  const MetricSchedule usual;
  const auto read = [&](const char* key, int64_t def, const char* doc) {
    return every.get_int(key, {.def = def, .min = 0, .max = 1 << 30, .doc = doc});
  };
  return {
      .parts = read("parts", usual.parts,
                    "steps between gradient norms of the parts and the vision/text ratio, 0: never "
                    "(loss, gradient norm, rates and sizes are written for every step)"),
      .sources = read("sources", usual.sources,
                      "steps between losses by source and by modality, 0: never"),
      .activations = read("activations", usual.activations,
                          "steps between means and variances of every block's output, 0: never"),
      .speed = read("speed", usual.speed, "steps between times, throughput and MFU, 0: never"),
      .memory = read("memory", usual.memory, "steps between peaks of memory, 0: never"),
      .devices =
          read("devices", usual.devices, "steps between uses of processor and GPUs, 0: never")};
}

}  // namespace mm::run::detail
