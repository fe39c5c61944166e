#include "lib/run/metrics.h"

#include <fmt/format.h>

namespace mm::run {

Json StepRecord::to_json() const {
  Json json{{"step", step},
            {"stage", stage},
            {"epoch", epoch},
            {"loss", loss},
            {"grad_norm", grad_norm},
            {"lr", Json::object()},
            {"tokens", tokens},
            {"targets", targets},
            {"images", images},
            {"samples", samples},
            {"step_ms", step_ms},
            {"data_wait_ms", data_wait_ms},
            {"exposed_comm_ms", exposed_comm_ms},
            {"tokens_s", tokens_s},
            {"mfu", mfu},
            {"mem_gib", memory_gib}};
  for (const auto& [part, rate] : lr) json["lr"][part] = rate;
  if (skipped) json["skipped"] = true;
  return json;
}

StepRecord StepRecord::from_json(const Json& json) {
  StepRecord r;
  r.step = json.value("step", int64_t{0});
  r.stage = json.value("stage", "");
  r.epoch = json.value("epoch", uint64_t{0});
  // A loss that was not a number is written as null.
  const auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : 0.0;
  };
  r.loss = number("loss");
  r.grad_norm = number("grad_norm");
  const Json rates = json.value("lr", Json::object());
  for (const auto& [part, rate] : rates.items()) r.lr[part] = rate.get<double>();
  r.tokens = json.value("tokens", int64_t{0});
  r.targets = json.value("targets", int64_t{0});
  r.images = json.value("images", int64_t{0});
  r.samples = json.value("samples", int64_t{0});
  r.step_ms = number("step_ms");
  r.data_wait_ms = number("data_wait_ms");
  r.exposed_comm_ms = number("exposed_comm_ms");
  r.tokens_s = number("tokens_s");
  r.mfu = number("mfu");
  r.memory_gib = number("mem_gib");
  r.skipped = json.value("skipped", false);
  return r;
}

std::string StepRecord::line() const {
  return fmt::format(
      "step {} {} loss {:.4f} grad_norm {:.3f} tokens_s {:.0f} mfu {:.3f} data_wait_ms {:.1f} "
      "mem_gib {:.2f}{}",
      step, stage, loss, grad_norm, tokens_s, mfu, data_wait_ms, memory_gib,
      skipped ? " (skipped: no targets)" : "");
}

namespace {
File open_log(const std::filesystem::path& path, int64_t resume_step) {
  cut_lines_after_step(path, resume_step);
  return File::create(path, /*append=*/true);
}
}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& run_directory, int64_t resume_step)
    : jsonl_(open_log(run_directory / "metrics.jsonl", resume_step)),
      tensorboard_(run_directory / "tb") {}

void MetricsWriter::write(const StepRecord& record) {
  jsonl_.write(record.to_json().dump() + "\n");
  tensorboard_.scalar("train/loss", record.loss, record.step);
  tensorboard_.scalar("train/grad_norm", record.grad_norm, record.step);
  for (const auto& [part, rate] : record.lr) tensorboard_.scalar("lr/" + part, rate, record.step);
  tensorboard_.scalar("speed/tokens_s", record.tokens_s, record.step);
  tensorboard_.scalar("speed/mfu", record.mfu, record.step);
  tensorboard_.scalar("speed/step_ms", record.step_ms, record.step);
  tensorboard_.scalar("speed/data_wait_ms", record.data_wait_ms, record.step);
  tensorboard_.scalar("memory/peak_gib", record.memory_gib, record.step);
}

std::vector<StepRecord> read_metrics(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = run_directory / "metrics.jsonl";
  std::vector<StepRecord> records;
  if (!std::filesystem::exists(path)) return records;
  const std::string text = read_file(path);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    records.push_back(StepRecord::from_json(
        parse_json(std::string_view(text).substr(begin, end - begin), path.string())));
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
    if (row.value("step", int64_t{0}) > step) break;
    keep = end + 1;
  }
  if (keep != text.size()) write_file_atomic(path, std::string_view(text).substr(0, keep));
}

}  // namespace mm::run
