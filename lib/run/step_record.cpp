#include <fmt/format.h>

#include <cmath>

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
                               {"gpu_use", &StepRecord::gpu_use}};

using Named = std::map<std::string, double>;
struct Table {
  const char* key;
  Named StepRecord::*place;
};
constexpr Table kTables[] = {{"lr", &StepRecord::lr},
                             {"grad_norm_parts", &StepRecord::part_norms},
                             {"loss_by", &StepRecord::loss_by},
                             {"loss_by_source", &StepRecord::loss_by_source}};

Named table_from(const Json& json) {
  Named named;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) named[name] = value.get<double>();
  }
  return named;
}

}  // namespace

double StepRecord::vision_text_ratio() const {
  const auto vision = part_norms.find("vision"), text = part_norms.find("language");
  if (vision == part_norms.end() || text == part_norms.end() || text->second == 0) return kUnknown;
  return vision->second / text->second;
}

StepRecord StepRecord::due(const MetricSchedule& schedule) const {
  StepRecord r = *this;
  if (!is_due(schedule.parts, step)) r.part_norms.clear();
  if (!is_due(schedule.sources, step)) r.loss_by.clear(), r.loss_by_source.clear();
  if (!is_due(schedule.activations, step)) r.activations.clear();
  if (!is_due(schedule.speed, step)) {
    for (double* figure :
         {&r.step_ms, &r.data_wait_ms, &r.exposed_comm_ms, &r.tokens_s, &r.samples_s, &r.mfu})
      *figure = kUnknown;
  }
  if (!is_due(schedule.memory, step)) r.memory_gib = kUnknown;
  if (!is_due(schedule.devices, step)) r.cpu_use = r.gpu_use = kUnknown;
  return r;
}

Json StepRecord::to_json() const {
  Json json{{"step", step},       {"stage", stage},         {"epoch", epoch},
            {"loss", loss},       {"grad_norm", grad_norm}, {"tokens", tokens},
            {"targets", targets}, {"images", images},       {"samples", samples}};
  for (const Table& table : kTables) {
    if (!(this->*table.place).empty()) json[table.key] = this->*table.place;
  }
  for (const Figure& figure : kFigures) {
    if (!std::isnan(this->*figure.place)) json[figure.key] = this->*figure.place;
  }
  if (const double ratio = vision_text_ratio(); !std::isnan(ratio))
    json["vision_text_ratio"] = ratio;
  for (const auto& [block, moments] : activations)
    json["activations"][block] = {{"mean", moments.mean}, {"variance", moments.variance}};
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
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : kUnknown;
  };
  r.loss = number("loss");
  r.grad_norm = number("grad_norm");
  r.tokens = json.value("tokens", int64_t{0});
  r.targets = json.value("targets", int64_t{0});
  r.images = json.value("images", int64_t{0});
  r.samples = json.value("samples", int64_t{0});
  for (const Table& table : kTables)
    r.*table.place = table_from(json.value(table.key, Json::object()));
  for (const Figure& figure : kFigures) r.*figure.place = number(figure.key);
  const Json blocks = json.value("activations", Json::object());
  for (const auto& [block, moments] : blocks.items())
    r.activations[block] = {moments.value("mean", 0.0), moments.value("variance", 0.0)};
  r.skipped = json.value("skipped", false);
  return r;
}

std::string StepRecord::line() const {
  std::string text =
      fmt::format("step {} {} loss {:.4f} grad_norm {:.3f}", step, stage, loss, grad_norm);
  const auto add = [&](const char* name, double value, int digits) {
    if (!std::isnan(value)) text += fmt::format(" {} {:.{}f}", name, value, digits);
  };
  add("tokens_s", tokens_s, 0);
  add("mfu", mfu, 3);
  add("data_wait_ms", data_wait_ms, 1);
  add("mem_gib", memory_gib, 2);
  return text + (skipped ? " (skipped: no targets)" : "");
}

std::string Metric::tag() const {
  return group + "/" + name + (label_value.empty() ? "" : "/" + label_value);
}

std::vector<Metric> metrics_of(const StepRecord& r) {
  std::vector<Metric> all;
  const auto add = [&](const char* group, const char* name, double value) {
    if (!std::isnan(value)) all.push_back({group, name, "", "", value});
  };
  const auto add_table = [&](const char* group, const char* name, const char* label,
                             const Named& table) {
    for (const auto& [key, value] : table) {
      if (!std::isnan(value)) all.push_back({group, name, label, key, value});
    }
  };
  add("train", "loss", r.loss);
  add("train", "grad_norm", r.grad_norm);
  add_table("train", "lr", "part", r.lr);
  add_table("train", "grad_norm_part", "part", r.part_norms);
  add("train", "vision_text_ratio", r.vision_text_ratio());
  add_table("train", "loss_by", "modality", r.loss_by);
  add_table("train", "loss_by_source", "source", r.loss_by_source);
  for (const auto& [block, moments] : r.activations) {
    all.push_back({"activations", "mean", "block", block, moments.mean});
    all.push_back({"activations", "variance", "block", block, moments.variance});
  }
  add("speed", "tokens_s", r.tokens_s);
  add("speed", "samples_s", r.samples_s);
  add("speed", "mfu", r.mfu);
  add("speed", "step_ms", r.step_ms);
  add("speed", "data_wait_ms", r.data_wait_ms);
  add("speed", "exposed_comm_ms", r.exposed_comm_ms);
  add("memory", "peak_gib", r.memory_gib);
  add("devices", "cpu_use", r.cpu_use);
  add("devices", "gpu_use", r.gpu_use);
  return all;
}

}  // namespace mm::run
