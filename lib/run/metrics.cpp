#include "lib/run/metrics.h"

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/run/prometheus_file.h"

namespace mm::run {

namespace {
File open_log(const std::filesystem::path& path, int64_t resume_step) {
  cut_lines_after_step(path, resume_step);
  return File::create(path, /*append=*/true);
}
}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& run_directory, int64_t resume_step,
                             const MetricSchedule& schedule)
    : schedule_(schedule),
      jsonl_(open_log(run_directory / "metrics.jsonl", resume_step)),
      tensorboard_(run_directory / "tb"),
      prometheus_(std::make_unique<PrometheusFile>(run_directory)) {
  tensorboard_.start_at(resume_step + 1);
}

MetricsWriter::~MetricsWriter() {
  try {
    prometheus_->flush();
  } catch (const Error& error) {
    log::warn("run", error.what());
  }
}

void MetricsWriter::write(const StepRecord& record) {
  const StepRecord due = record.due(schedule_);
  jsonl_.write(due.to_json().dump() + "\n");
  for (const Metric& metric : metrics_of(due))
    tensorboard_.scalar(metric.tag(), metric.value, due.step);
  prometheus_->update(due);
}

std::vector<StepRecord> read_metrics(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = run_directory / "metrics.jsonl";
  std::vector<StepRecord> records;
  if (!std::filesystem::exists(path)) return records;
  const std::string text = read_file(path);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string where = fmt::format("{}: line {}", path.string(), records.size() + 1);
    records.push_back(StepRecord::from_json(
        parse_json(std::string_view(text).substr(begin, end - begin), where), where));
  }
  return records;
}

void cut_lines_after_step(const std::filesystem::path& path, int64_t step) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_file(path);
  size_t keep = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const Json row = parse_json(std::string_view(text).substr(begin, end - begin), path.string());
    if (!row.is_object() || !row.contains("step") || !row["step"].is_number_integer())
      throw DataError("{}: byte {}: expected an object with the number of a \"step\"",
                      path.string(), begin);
    if (row["step"].get<int64_t>() > step) break;
    keep = end + 1;
  }
  if (keep != text.size()) write_file_atomic(path, std::string_view(text).substr(0, keep));
}

}  // namespace mm::run
