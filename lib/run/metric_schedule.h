#pragma once
#include <cstdint>

namespace mm::run {

/// Steps between two writings of each metric, 0: never; the names are those of metrics.jsonl. What
/// says which step it was (step, stage, epoch, sizes) is written for every step.
struct MetricSchedule {
  int64_t loss = 1, grad_norm = 1, lr = 1;
  int64_t grad_norm_parts = 1, vision_text_ratio = 1;
  int64_t loss_by = 1, loss_by_source = 1;
  int64_t activation_mean = 0, activation_variance = 0;  ///< cost a pass over every block's output
  int64_t step_ms = 1, data_wait_ms = 1, exposed_comm_ms = 1, tokens_s = 1, samples_s = 1, mfu = 1;
  int64_t mem_gib = 1;
  int64_t cpu_use = 10, gpu_use = 10;

  bool activations() const { return activation_mean > 0 || activation_variance > 0; }
  bool activations_due(int64_t step) const;
  bool sources_due(int64_t step) const;
};

/// Whether what is written every `every` steps is due after step `step` (from 1).
inline bool is_due(int64_t every, int64_t step) { return every > 0 && step % every == 0; }

inline bool MetricSchedule::activations_due(int64_t step) const {
  return is_due(activation_mean, step) || is_due(activation_variance, step);
}
inline bool MetricSchedule::sources_due(int64_t step) const {
  return is_due(loss_by, step) || is_due(loss_by_source, step);
}

/// A metric by its name.
struct ScheduledMetric {
  const char* name;
  int64_t MetricSchedule::*every;
};
inline constexpr ScheduledMetric kScheduledMetrics[] = {
    {"loss", &MetricSchedule::loss},
    {"grad_norm", &MetricSchedule::grad_norm},
    {"lr", &MetricSchedule::lr},
    {"grad_norm_parts", &MetricSchedule::grad_norm_parts},
    {"vision_text_ratio", &MetricSchedule::vision_text_ratio},
    {"loss_by", &MetricSchedule::loss_by},
    {"loss_by_source", &MetricSchedule::loss_by_source},
    {"activation_mean", &MetricSchedule::activation_mean},
    {"activation_variance", &MetricSchedule::activation_variance},
    {"step_ms", &MetricSchedule::step_ms},
    {"data_wait_ms", &MetricSchedule::data_wait_ms},
    {"exposed_comm_ms", &MetricSchedule::exposed_comm_ms},
    {"tokens_s", &MetricSchedule::tokens_s},
    {"samples_s", &MetricSchedule::samples_s},
    {"mfu", &MetricSchedule::mfu},
    {"mem_gib", &MetricSchedule::mem_gib},
    {"cpu_use", &MetricSchedule::cpu_use},
    {"gpu_use", &MetricSchedule::gpu_use}};

}  // namespace mm::run
