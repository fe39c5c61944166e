#include "lib/run/run_snapshot.h"

#include "lib/base/error.h"

namespace mm::run {

Json RunSnapshot::to_json() const {
  return {{"schema", 1},
          {"program", "mmtrain"},
          {"run_id", run_id},
          {"global_step", global_step},
          {"stage", stage},
          {"stage_step", stage_step},
          {"update_count", update_count},
          {"tokens_seen", tokens_seen},
          {"bad_samples", bad_samples},
          {"rng", {{"kind", "philox4x32-10, counter-based"}, {"seed", seed}}},
          {"ema", {{"updates", average_updates}}},
          {"loss_scale", {{"scale", loss_scale.scale}, {"good_steps", loss_scale.good_steps}}},
          {"contract", contract},
          {"data", data},
          {"config", config}};
}

RunSnapshot RunSnapshot::from_json(const Json& json, const std::string& origin) {
  try {
    if (json.at("program") != "mmtrain" || json.at("schema") != 1) {
      throw DataError("{}: state of program {} schema {}; expected mmtrain, schema 1", origin,
                      json.at("program").dump(), json.at("schema").dump());
    }
    RunSnapshot s;
    s.run_id = json.at("run_id");
    s.global_step = json.at("global_step");
    s.stage = json.at("stage");
    s.stage_step = json.at("stage_step");
    s.update_count = json.at("update_count");
    s.tokens_seen = json.at("tokens_seen");
    s.bad_samples = json.at("bad_samples");
    s.seed = json.at("rng").at("seed");
    if (json.contains("loss_scale")) {  // absent in states of before fp16
      const Json& saved = json.at("loss_scale");
      s.loss_scale = {saved.at("scale"), saved.at("good_steps")};
    }
    if (json.contains("ema")) s.average_updates = json.at("ema").at("updates");
    s.contract = json.at("contract");
    s.data = json.at("data");
    s.config = json.at("config");
    return s;
  } catch (const Json::exception& error) {
    throw DataError("{}: the trainer's state is damaged: {}", origin, error.what());
  }
}

std::vector<state::StateTensor> weight_tensors(const optim::ParamStore& params) {
  std::vector<state::StateTensor> tensors;
  const std::vector<model::ParamSpec>& specs = params.model().params;
  for (size_t i = 0; i < specs.size(); ++i)
    tensors.push_back({specs[i].name, params.master(static_cast<model::ParamId>(i))});
  return tensors;
}

std::vector<state::StateTensor> average_tensors(const model::Model& model, const optim::Ema& ema) {
  std::vector<state::StateTensor> tensors;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const at::Tensor average = ema.average(static_cast<model::ParamId>(i));
    if (average.defined()) tensors.push_back({"ema." + model.params[i].name, average});
  }
  return tensors;
}

std::string contract_difference(const Json& saved, const Json& now) {
  for (const auto& [key, value] : now.items()) {
    const Json before = saved.contains(key) ? saved.at(key) : Json();
    if (before != value)
      return fmt::format("{}: {} in the checkpoint, {} now", key, before.dump(), value.dump());
  }
  for (const auto& [key, value] : saved.items()) {
    if (!now.contains(key))
      return fmt::format("{}: {} in the checkpoint, absent now", key, value.dump());
  }
  return "";
}

}  // namespace mm::run
