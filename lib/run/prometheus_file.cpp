#include "lib/run/prometheus_file.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace mm::run {

using Clock = std::chrono::steady_clock;
using Labels = std::map<std::string, std::string>;

struct PrometheusFile::Gauges {
  prometheus::Registry registry;
  Labels run;
  std::optional<Clock::time_point> written;
  bool newer = false;  ///< than what is on disk

  prometheus::Gauge& gauge(const std::string& name, const std::string& help, Labels labels = {}) {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Labels(run).Register(registry);
    return family.Add(labels);
  }
};

PrometheusFile::PrometheusFile(std::filesystem::path run_directory)
    : path_(run_directory / "metrics.prom"), gauges_(std::make_unique<Gauges>()) {
  gauges_->run = {{"run", std::filesystem::weakly_canonical(run_directory).filename().string()}};
}

PrometheusFile::~PrometheusFile() = default;

void PrometheusFile::update(const StepRecord& record) {
  Gauges& all = *gauges_;
  all.gauge("mmkit_step", "Global step that was done last.").Set(static_cast<double>(record.step));
  auto& tokens = prometheus::BuildCounter()
                     .Name("mmkit_tokens_total")
                     .Help("Tokens trained on since this start, padding left out.")
                     .Labels(all.run)
                     .Register(all.registry)
                     .Add({});
  tokens.Increment(static_cast<double>(record.tokens));
  for (const Metric& metric : metrics_of(record)) {
    Labels labels;
    if (!metric.label.empty()) labels[metric.label] = metric.label_value;
    all.gauge("mmkit_" + metric.group + "_" + metric.name,
              "Of the newest step that tells it; docs/formats.md has the meaning.", labels)
        .Set(metric.value);
  }
  all.newer = true;
  if (!all.written || Clock::now() - *all.written >= std::chrono::seconds(1)) flush();
}

void PrometheusFile::flush() {
  if (!gauges_->newer) return;
  write_file_atomic(path_, prometheus::TextSerializer().Serialize(gauges_->registry.Collect()));
  gauges_->written = Clock::now();
  gauges_->newer = false;
}

}  // namespace mm::run
