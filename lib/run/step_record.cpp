#include <fmt/format.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/run/metrics.h"

namespace mm::run {
namespace {

/// The figures that stand in JSON under their own name where they are numbers.
struct Figure {
  const char* key;
  double StepRecord::*place;
};
constexpr Figure kFigures[] = {{"step_ms", &StepRecord::step_ms},
                               {"data_wait_ms", &StepRecord::data_wait_ms},
                               {"exposed_comm_ms", &StepRecord::exposed_comm_ms},
                               {"tokens_s", &StepRecord::tokens_s},
                               {"samples_s", &StepRecord::samples_s},
                               {"mfu", &StepRecord::mfu},
                               {"mem_gib", &StepRecord::memory_gib},
                               {"cpu_use", &StepRecord::cpu_use},
                               {"gpu_use", &StepRecord::gpu_use},
                               {"validation_loss", &StepRecord::validation_loss}};

using Named = std::map<std::string, double>;
struct Table {
  const char* key;
  Named StepRecord::*place;
};
constexpr Table kTables[] = {{"lr", &StepRecord::lr},
                             {"grad_norm_parts", &StepRecord::part_norms},
                             {"loss_by", &StepRecord::loss_by},
                             {"loss_by_source", &StepRecord::loss_by_source},
                             {"validation_by_time", &StepRecord::validation_by_time}};

Named table_from(const Json& json) {
  Named named;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) named[name] = value.get<double>();
  }
  return named;
}

StepRecord record_from(const Json& json) {
  StepRecord r;
  r.step = json.value("step", int64_t{0});
  r.stage = json.value("stage", "");
  r.epoch = json.value("epoch", uint64_t{0});
  // A loss that was not a number is written as null.
  const auto number = [](const Json& from, const char* key) {
    return from.contains(key) && from[key].is_number() ? from[key].get<double>() : kUnknown;
  };
  r.loss = number(json, "loss");
  r.grad_norm = number(json, "grad_norm");
  r.tokens = json.value("tokens", int64_t{0});
  r.targets = json.value("targets", int64_t{0});
  r.images = json.value("images", int64_t{0});
  r.samples = json.value("samples", int64_t{0});
  for (const Table& table : kTables)
    r.*table.place = table_from(json.value(table.key, Json::object()));
  for (const Figure& figure : kFigures) r.*figure.place = number(json, figure.key);
  const Json blocks = json.value("activations", Json::object());
  for (const auto& [block, moments] : blocks.items())
    r.activations[block] = {number(moments, "mean"), number(moments, "variance")};
  for (const char* name : {"loss", "grad_norm", "vision_text_ratio"}) {
    if (!json.contains(name)) r.left_out.insert(name);
  }
  r.skipped = json.value("skipped", false);
  r.skip_reason = json.value("skip_reason", "");
  return r;
}

}  // namespace

double StepRecord::vision_text_ratio() const {
  const auto vision = part_norms.find("vision"), text = part_norms.find("language");
  if (vision == part_norms.end() || text == part_norms.end() || text->second == 0) return kUnknown;
  return vision->second / text->second;
}

StepRecord StepRecord::due(const MetricSchedule& schedule) const {
  StepRecord r = *this;
  for (const ScheduledMetric& metric : kScheduledMetrics) {
    if (!is_due(schedule.*metric.every, step)) r.left_out.insert(metric.name);
  }
  return r;
}

Json StepRecord::to_json() const {
  const auto kept = [&](const char* name) { return !left_out.contains(name); };
  Json json{{"step", step}, {"stage", stage}, {"epoch", epoch}};
  if (kept("loss")) json["loss"] = loss;
  if (kept("grad_norm")) json["grad_norm"] = grad_norm;
  json.update(
      Json{{"tokens", tokens}, {"targets", targets}, {"images", images}, {"samples", samples}});
  for (const Table& table : kTables) {
    if (kept(table.key) && !(this->*table.place).empty()) json[table.key] = this->*table.place;
  }
  for (const Figure& figure : kFigures) {
    if (kept(figure.key) && !std::isnan(this->*figure.place))
      json[figure.key] = this->*figure.place;
  }
  if (const double ratio = vision_text_ratio(); kept("vision_text_ratio") && !std::isnan(ratio))
    json["vision_text_ratio"] = ratio;
  for (const auto& [block, moments] : activations) {
    if (kept("activation_mean") && !std::isnan(moments.mean))
      json["activations"][block]["mean"] = moments.mean;
    if (kept("activation_variance") && !std::isnan(moments.variance))
      json["activations"][block]["variance"] = moments.variance;
  }
  if (skipped) json["skipped"] = true;
  if (skipped && !skip_reason.empty()) json["skip_reason"] = skip_reason;
  return json;
}

StepRecord StepRecord::from_json(const Json& json, const std::string& origin) {
  try {
    return record_from(json);
  } catch (const Json::exception& error) {
    throw DataError("{}: no record of a step: {}", origin, error.what());
  }
}

std::string StepRecord::line() const {
  std::string text = fmt::format("step {} {}", step, stage);
  if (!left_out.contains("loss")) text += fmt::format(" loss {:.4f}", loss);
  if (!left_out.contains("grad_norm")) text += fmt::format(" grad_norm {:.3f}", grad_norm);
  const auto add = [&](const char* name, double value, int digits) {
    if (!std::isnan(value)) text += fmt::format(" {} {:.{}f}", name, value, digits);
  };
  add("tokens_s", tokens_s, 0);
  add("mfu", mfu, 3);
  add("data_wait_ms", data_wait_ms, 1);
  add("mem_gib", memory_gib, 2);
  if (!skipped) return text;
  if (skip_reason.empty()) return text + " (skipped)";
  return text + (skip_reason == "overflow" ? " (skipped: fp16 gradients overflowed)"
                                           : " (skipped: no targets)");
}

std::string Metric::tag() const {
  return group + "/" + name + (label_value.empty() ? "" : "/" + label_value);
}

std::vector<Metric> metrics_of(const StepRecord& r) {
  std::vector<Metric> all;
  const auto put = [&](const char* key, Metric metric) {
    if (!std::isnan(metric.value) && !r.left_out.contains(key)) all.push_back(std::move(metric));
  };
  const auto add = [&](const char* group, const char* name, double value) {
    put(name, {group, name, "", "", value});
  };
  const auto add_table = [&](const char* key, const char* name, const char* label,
                             const Named& table) {
    for (const auto& [part, value] : table) put(key, {"train", name, label, part, value});
  };
  add("train", "loss", r.loss);
  add("train", "grad_norm", r.grad_norm);
  add_table("lr", "lr", "part", r.lr);
  add_table("grad_norm_parts", "grad_norm_part", "part", r.part_norms);
  add("train", "vision_text_ratio", r.vision_text_ratio());
  add_table("loss_by", "loss_by", "modality", r.loss_by);
  add_table("loss_by_source", "loss_by_source", "source", r.loss_by_source);
  for (const auto& [block, moments] : r.activations) {
    put("activation_mean", {"activations", "mean", "block", block, moments.mean});
    put("activation_variance", {"activations", "variance", "block", block, moments.variance});
  }
  add("validation", "validation_loss", r.validation_loss);
  for (const auto& [time, loss] : r.validation_by_time)
    put("validation_by_time", {"validation", "loss_at", "time", time, loss});
  add("speed", "tokens_s", r.tokens_s);
  add("speed", "samples_s", r.samples_s);
  add("speed", "mfu", r.mfu);
  add("speed", "step_ms", r.step_ms);
  add("speed", "data_wait_ms", r.data_wait_ms);
  add("speed", "exposed_comm_ms", r.exposed_comm_ms);
  put("mem_gib", {"memory", "peak_gib", "", "", r.memory_gib});
  add("devices", "cpu_use", r.cpu_use);
  add("devices", "gpu_use", r.gpu_use);
  return all;
}

}  // namespace mm::run
