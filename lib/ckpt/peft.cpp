#include "lib/ckpt/peft.h"

#include <set>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/json_scanner.h"

namespace mm::ckpt {
namespace {

constexpr std::string_view kPrefix = "base_model.model.", kWeight = ".weight";
constexpr uint64_t kMaxConfigBytes = 16 << 20;

bool is_set(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return !(found->is_structured() && found->empty());
}

void refuse_unknown_kinds(const Json& config, const std::string& origin) {
  const Json type = config.value("peft_type", Json("LORA"));
  if (type != "LORA")
    throw DataError("{}: peft_type is {}, expected \"LORA\"", origin, type.dump());
  for (const char* key : {"use_dora", "use_rslora", "rank_pattern", "alpha_pattern", "lora_bias",
                          "fan_in_fan_out", "layer_replication"}) {
    if (is_set(config, key))
      throw DataError("{}: {} is {}, which is not supported: one rank, scale alpha / rank", origin,
                      key, config.at(key).dump());
  }
  if (const Json bias = config.value("bias", Json("none")); bias != "none")
    throw DataError("{}: bias is {}, expected \"none\"", origin, bias.dump());
}

/// "base_model.model.x" -> published x.
std::string name_of(const std::string& stored, std::string_view model_type,
                    const std::string& origin) {
  if (!stored.starts_with(kPrefix))
    throw DataError("{}: tensor {}: a name that begins with {} expected", origin,
                    printable_name(stored), kPrefix);
  const std::string inside = stored.substr(kPrefix.size());
  return published_name(model_type, inside).value_or(inside);
}

std::string module_of(std::string_view weight) {
  return std::string(weight.substr(0, weight.size() - kWeight.size()));
}

std::string last_component(const std::string& module) {
  return module.substr(module.rfind('.') + 1);
}

}  // namespace

PeftAdapter open_peft(const std::filesystem::path& directory, std::string_view model_type) {
  const std::filesystem::path path = directory / "adapter_config.json";
  const std::string origin = path.string();
  const Json config = parse_json(read_file(path, kMaxConfigBytes), origin, {.max_depth = 32});
  if (!config.is_object()) throw DataError("{}: a JSON object expected", origin);
  refuse_unknown_kinds(config, origin);
  PeftAdapter adapter;
  const auto rank = config.find("r"), alpha = config.find("lora_alpha");
  if (rank == config.end() || !rank->is_number_integer() || *rank < 1 || *rank > (1 << 16))
    throw DataError("{}: \"r\": a rank of at least 1 expected", origin);
  if (alpha == config.end() || !alpha->is_number())
    throw DataError("{}: \"lora_alpha\": a number expected", origin);
  adapter.rank = rank->get<int64_t>();
  adapter.alpha = alpha->get<double>();
  const Json dropout = config.value("lora_dropout", Json(0.0));
  if (!dropout.is_number() || dropout < 0 || dropout > 1)
    throw DataError("{}: \"lora_dropout\": a number from 0 to 1 expected", origin);
  adapter.dropout = dropout.get<double>();
  adapter.files = std::make_shared<HfWeights>(HfWeights::open(directory));
  for (const auto& [stored, tensor] : adapter.files->tensors()) {
    const std::string name = name_of(stored, model_type, directory.string());
    if (!adapter.tensors.emplace(name, tensor).second)
      throw DataError("{}: two tensors are called {} once spellings are evened out",
                      directory.string(), name);
  }
  return adapter;
}

Json peft_config(const LowRank& low_rank, const PeftFacts& facts) {
  const bool whole = low_rank.alpha == static_cast<double>(static_cast<int64_t>(low_rank.alpha));
  return {
      {"peft_type", "LORA"},
      {"base_model_name_or_path", facts.base_model.empty() ? Json() : Json(facts.base_model)},
      {"task_type", nullptr},
      {"inference_mode", true},
      {"r", low_rank.rank},
      {"lora_alpha", whole ? Json(static_cast<int64_t>(low_rank.alpha)) : Json(low_rank.alpha)},
      {"lora_dropout", low_rank.dropout},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"use_rslora", false},
      {"use_dora", false},
      {"rank_pattern", Json::object()},
      {"alpha_pattern", Json::object()},
      {"target_modules", facts.target_modules},
      {"modules_to_save", facts.modules_to_save.empty() ? Json() : Json(facts.modules_to_save)}};
}

std::string peft_name(std::string_view published) {
  return std::string(kPrefix) + transformers_name(published);
}

std::vector<std::string> peft_targets(const std::vector<TensorSource>& tensors) {
  std::set<std::string> adapted, others, targets;
  for (const TensorSource& tensor : tensors)
    if (is_low_rank_name(tensor.name)) adapted.insert(low_rank_module(tensor.name));
  for (const TensorSource& tensor : tensors) {
    if (is_low_rank_name(tensor.name) || !tensor.name.ends_with(kWeight)) continue;
    const std::string module = module_of(tensor.name);
    if (!adapted.contains(module)) others.insert(last_component(module));
  }
  for (const std::string& module : adapted) {
    const std::string last = last_component(module);
    targets.insert(others.contains(last) ? module_of(transformers_name(module + ".weight")) : last);
  }
  return {targets.begin(), targets.end()};
}

}  // namespace mm::ckpt
