#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/run/metric_schedule.h"
#include "lib/run/tensorboard.h"

namespace mm::run {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Of the elements of one block's output, over all ranks and micro-batches of a step.
struct Moments {
  double mean = kUnknown, variance = kUnknown;
};

/// What is known of one training step, over all ranks. The step line, metrics.jsonl, TensorBoard
/// and the Prometheus file come from this one struct. A figure that was not taken is NaN.
struct StepRecord {
  int64_t step = 0;  ///< global step, counted from 1 when it is done
  std::string stage;
  uint64_t epoch = 0;                ///< of the stage's data set
  double loss = 0;                   ///< what is minimised (loss.reduction), before the update
  double grad_norm = 0;              ///< true global norm, before clipping
  std::map<std::string, double> lr;  ///< per part
  int64_t tokens = 0, targets = 0, images = 0, samples = 0;  ///< all ranks, padding left out
  std::map<std::string, double> part_norms;                  ///< of the parts that are trained
  /// Mean loss of a target in samples with pictures ("picture") and without ("text"); by name of
  /// the data set's source.
  std::map<std::string, double> loss_by, loss_by_source;
  std::map<std::string, Moments> activations;  ///< by block
  /// Waits: the worst rank.
  double step_ms = kUnknown, data_wait_ms = kUnknown, exposed_comm_ms = kUnknown;
  double tokens_s = kUnknown, samples_s = kUnknown;
  double mfu = kUnknown;  ///< model FLOPs (vision counted, padding left out, recompute not counted)
                          ///< / (time * ranks * measured GEMM rate)
  double memory_gib = kUnknown;  ///< peak resident set of the largest rank, since its process began
  double cpu_use = kUnknown;     ///< processor time / time, cores of a rank on average
  double gpu_use = kUnknown;     ///< share of time, mean of this node's GPUs; NaN: no NVML
  double validation_loss = kUnknown;  ///< [validation]: of held-out pictures, mean over times
  std::map<std::string, double> validation_by_time;  ///< by step of the schedule, or by sigma
  bool skipped = false;                              ///< nothing was updated
  /// Of a skipped step: "no_targets", or "overflow" of fp16 gradients; empty in older records.
  std::string skip_reason = {};
  std::set<std::string> left_out = {};  ///< names of metrics (metric_schedule.h) not to be written

  /// Gradient norm of the vision tower / the language model's; NaN unless both are trained.
  double vision_text_ratio() const;
  /// The record with those metrics left out that are not due after its step.
  StepRecord due(const MetricSchedule& schedule) const;
  Json to_json() const;
  /// Throws DataError with `origin` for values of other types.
  static StepRecord from_json(const Json& json, const std::string& origin = "metrics");
  /// "step 120 align loss 1.234 grad_norm 0.98 tokens_s 12345 mfu 0.31 data_wait_ms 0.2 mem_gib
  /// 0.51"
  std::string line() const;
};

/// A figure under its TensorBoard tag "group/name" or, with a label, "group/name/value".
struct Metric {
  std::string group, name;
  std::string label, label_value;  ///< Prometheus' label, such as part="vision"; may be empty
  double value = 0;

  std::string tag() const;
};
/// Every figure of a record that is a number and not left out.
std::vector<Metric> metrics_of(const StepRecord& record);

/// RUN/metrics.jsonl, RUN/tb and RUN/metrics.prom, written by rank 0. On resume, records after
/// `resume_step` (made by steps that are about to be run again) are cut off, so that each step
/// stands there once; TensorBoard's files keep theirs, and it is told to drop them.
class MetricsWriter {
 public:
  MetricsWriter(const std::filesystem::path& run_directory, int64_t resume_step,
                const MetricSchedule& schedule = {});
  ~MetricsWriter();
  void write(const StepRecord& record);
  /// For TensorBoard, under "samples/grid".
  void grid(const TensorboardWriter::Png& picture, int64_t step) {
    tensorboard_.image("samples/grid", picture, step);
  }

 private:
  const MetricSchedule schedule_;
  File jsonl_;
  TensorboardWriter tensorboard_;
  std::unique_ptr<class PrometheusFile> prometheus_;
};

/// All whole lines of RUN/metrics.jsonl; a last line without its newline is left out.
std::vector<StepRecord> read_metrics(const std::filesystem::path& run_directory);

/// Cuts `path` (JSON lines that have a "step") after the last line whose step is at most `step`. No
/// file: nothing to do.
void cut_lines_after_step(const std::filesystem::path& path, int64_t step);

}  // namespace mm::run
