#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/run/recipe_tables.h"

namespace mm::run::detail {
namespace {

/// A key that several metrics have as their default.
struct Group {
  const char* key;
  const char* doc;
  std::vector<std::string_view> metrics;  ///< the first one's default is the group's
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"parts",
       "steps between gradient norms of the parts and the vision/text ratio, 0: never",
       {"grad_norm_parts", "vision_text_ratio"}},
      {"sources",
       "steps between losses by source and by modality, 0: never",
       {"loss_by", "loss_by_source"}},
      {"activations",
       "steps between means and variances of every block's output, 0: never",
       {"activation_mean", "activation_variance"}},
      {"speed",
       "steps between times, throughput and MFU, 0: never",
       {"step_ms", "data_wait_ms", "exposed_comm_ms", "tokens_s", "samples_s", "mfu"}},
      {"memory", "steps between peaks of memory, 0: never", {"mem_gib"}},
      {"devices", "steps between uses of processor and GPUs, 0: never", {"cpu_use", "gpu_use"}}};
  return all;
}

int64_t& place_of(MetricSchedule& schedule, std::string_view name) {
  for (const ScheduledMetric& metric : kScheduledMetrics) {
    if (metric.name == name) return schedule.*metric.every;
  }
  throw InternalError("no metric is called {}", name);
}

constexpr int64_t kMost = 1 << 30;

}  // namespace

MetricSchedule read_metric_schedule(ConfigTable table) {
  ConfigTable every = table.table("every");
  MetricSchedule schedule;
  const auto alone = [&](const char* key, const char* doc) {
    int64_t& place = place_of(schedule, key);
    place = every.get_int(key, {.def = place, .min = 0, .max = kMost, .doc = doc});
  };
  alone("loss", "steps between losses in metrics.jsonl, TensorBoard and metrics.prom, 0: never");
  alone("grad_norm", "steps between gradient norms before clipping, 0: never");
  alone("lr", "steps between learning rates, 0: never");
  for (const Group& group : groups()) {
    const int64_t usual = place_of(schedule, group.metrics.front());
    const int64_t common =
        every.get_int(group.key, {.def = usual, .min = 0, .max = kMost, .doc = group.doc});
    for (const std::string_view name : group.metrics) {
      place_of(schedule, name) =
          every
              .find_int(name, {.min = 0,
                               .max = kMost,
                               .doc = fmt::format("steps between values of this one, 0: never; "
                                                  "without, those of `{}`",
                                                  group.key)})
              .value_or(common);
    }
  }
  return schedule;
}

}  // namespace mm::run::detail
