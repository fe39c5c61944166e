#pragma once
#include <filesystem>
#include <memory>

#include "lib/run/metrics.h"

namespace mm::run {

/// RUN/metrics.prom in Prometheus' text format, for node_exporter's textfile collector: the newest
/// value of every figure as a gauge mmkit_<group>_<name>, labelled with the run, and the counters
/// mmkit_step and mmkit_tokens_total. Written whole and renamed into place, at most once a second,
/// so that a reader never sees half of it and fast steps are not slowed. Not thread-safe.
class PrometheusFile {
 public:
  explicit PrometheusFile(std::filesystem::path run_directory);
  ~PrometheusFile();
  void update(const StepRecord& record);
  /// What is not on disk yet. Throws IoError.
  void flush();

 private:
  struct Gauges;
  std::filesystem::path path_;
  std::unique_ptr<Gauges> gauges_;
};

}  // namespace mm::run
