#include "lib/ckpt/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/peft.h"
#include "lib/ckpt/piece_reader.h"
#include "lib/ckpt/weight_source_parts.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

constexpr std::string_view kOptimizer = "optimizer.", kAverage = "ema.";

/// mmtrain's resume contract.
Json contract_of(const Json& state, const fs::path& origin) {
  Json contract = state.value("contract", Json::object());
  if (!contract.is_object())
    throw DataError("{}: the \"contract\" of its state is no object", origin.string());
  return contract;
}

/// What the contract says of adapters, vocabulary and training.
void read_contract(WeightSource& source, const Json& contract, const fs::path& origin) {
  if (const auto lora = contract.find("lora"); lora != contract.end()) {
    const auto value = [&](const char* key) {
      return lora->contains(key) ? lora->at(key) : Json();
    };
    const Json rank = value("rank"), alpha = value("alpha"), dropout = value("dropout");
    if (!rank.is_number_integer() || rank < 1 || !alpha.is_number())
      throw DataError("{}: the contract of its state has adapters without a rank or alpha",
                      origin.string());
    source.low_rank = LowRank{rank.get<int64_t>(), alpha.get<double>(),
                              dropout.is_number() ? dropout.get<double>() : 0};
  }
  if (const Json from = contract.value("model.from", Json()); from.is_string())
    source.base_model = from.get<std::string>();
  for (const auto& [key, value] : contract.items()) {
    if (!key.starts_with("stage.") || !key.ends_with(".train") || !value.is_array()) continue;
    for (const Json& part : value)
      if (part.is_string() && std::ranges::find(source.trained_parts, part.get<std::string>()) ==
                                  source.trained_parts.end())
        source.trained_parts.push_back(part.get<std::string>());
  }
}

/// Rows that stand for ids, where the recipe filled the tables up: of the data set's tokenizer, or
/// as many as the recipe added.
uint64_t real_vocab_of(const Json& contract, const fs::path& run) {
  const Json rows = contract.value("model.vocab", Json());
  const fs::path data = run / "data.json";
  if (!rows.is_array() || rows.size() != 2 || rows[1] == 1 || !fs::is_regular_file(data)) return 0;
  const Json manifest = read_json_file(data);
  const bool named = manifest.contains("tokenizer") && manifest.at("tokenizer").is_object();
  if (!named)
    throw DataError("{}: expected a data set's manifest with a \"tokenizer\"", data.string());
  const Json ids = manifest.at("tokenizer").value("vocab_size", Json());
  if (!ids.is_number_unsigned() || !rows[0].is_number_unsigned()) return 0;
  return std::max(ids.get<uint64_t>(), rows[0].get<uint64_t>());
}

/// Names of tensors whose moving average takes their place (field case C42: raw weights and
/// averages lie apart in the file).
std::set<std::string_view> averaged_names(const Manifest& manifest, Averages averages) {
  std::set<std::string_view> names;
  if (averages == Averages::kLeave) return names;
  for (const TensorRecord& record : manifest.tensors) {
    if (record.name.starts_with(kAverage))
      names.insert(std::string_view(record.name).substr(kAverage.size()));
  }
  return names;
}

WeightSource from_checkpoint(const fs::path& directory, const Manifest& manifest,
                             Averages averages) {
  const auto config = manifest.state.find("config");
  if (config == manifest.state.end() || !config->is_object())
    throw DataError(
        "{}: its state holds no model configuration; expected one that mmtrain or "
        "mmckpt convert wrote",
        directory.string());
  const auto reader = std::make_shared<PieceReader>(directory, manifest);
  WeightSource source{.config = *config, .open_files = {reader}};
  const Json contract = contract_of(manifest.state, directory);
  read_contract(source, contract, directory);
  const fs::path run = directory.parent_path().parent_path();
  source.real_vocab = real_vocab_of(contract, run);
  for (const char* name : {"tokenizer.model", "tokenizer.json"})
    if (fs::is_regular_file(run / name)) source.side_files.push_back(run / name);
  if (fs::is_directory(run / "hf")) {
    for (const fs::path& file : side_files_of(run / "hf")) source.side_files.push_back(file);
  }
  const std::set<std::string_view> averaged = averaged_names(reader->manifest(), averages);
  if (!averaged.empty())
    source.notes.push_back("weights are the run's moving average; --raw-weights takes the others");
  for (const TensorRecord& record : reader->manifest().tensors) {
    const bool average = record.name.starts_with(kAverage);
    if (record.name.starts_with(kOptimizer) || (average && averaged.empty()) ||
        averaged.contains(record.name))
      continue;
    source.tensors.push_back({.name = average ? record.name.substr(kAverage.size()) : record.name,
                              .dtype = record.dtype,
                              .shape = record.shape,
                              .stream = [reader = reader.get(), &record](const ByteSink& sink) {
                                reader->stream(record, sink);
                              }});
  }
  sort_and_check(source, directory.string());
  return source;
}

bool is_vocab_table(std::string_view name) {
  return name.ends_with("embed_tokens.weight") || name.ends_with("lm_head.weight");
}

/// The first `rows` rows.
TensorSource cut_rows(TensorSource tensor, uint64_t rows) {
  const uint64_t keep = packed_bytes(tensor.dtype, tensor.shape).value() / tensor.shape[0] * rows;
  tensor.shape[0] = rows;
  tensor.stream = [keep, all = tensor.stream](const ByteSink& sink) {
    uint64_t left = keep;
    all([&](std::span<const std::byte> part) {
      const auto take = static_cast<size_t>(std::min<uint64_t>(left, part.size()));
      if (take > 0) sink(part.first(take));
      left -= take;
    });
  };
  return tensor;
}

}  // namespace

void drop_filler_rows(WeightSource& source) {
  if (source.real_vocab == 0) return;
  const uint64_t rows = source.real_vocab;
  for (TensorSource& tensor : source.tensors) {
    if (!is_vocab_table(tensor.name) || tensor.shape.size() != 2 || tensor.shape[0] <= rows)
      continue;
    source.notes.push_back(fmt::format("{}: {} filler rows dropped, {} kept", tensor.name,
                                       tensor.shape[0] - rows, rows));
    tensor = cut_rows(std::move(tensor), rows);
  }
  Json& text = source.config.contains("text_config") ? source.config["text_config"] : source.config;
  text["vocab_size"] = rows;
}

void add_adapter(WeightSource& source, const fs::path& directory) {
  const PeftAdapter adapter = open_peft(directory, model_type_of(source.config));
  if (source.low_rank)
    throw DataError("{}: the model has adapters already; merge them first (--merge-lora)",
                    directory.string());
  for (const auto& [name, tensor] : adapter.tensors) {
    if (is_low_rank_name(name)) {
      source.tensors.push_back(stream_of(name, tensor));
      continue;
    }
    const auto at = std::ranges::find(source.tensors, name, &TensorSource::name);
    if (at == source.tensors.end() || at->shape != tensor.entry->shape)
      throw DataError("{}: {} {} does not fit the model{}", directory.string(), name,
                      shape_text(tensor.entry->shape),
                      at == source.tensors.end() ? "" : ", which has " + shape_text(at->shape));
    *at = stream_of(name, tensor);
  }
  source.low_rank = adapter.low_rank();
  source.open_files.push_back(adapter.files);
  std::ranges::sort(source.tensors, {}, &TensorSource::name);
}

WeightSource open_weights(const Target& target, const fs::path& config, Averages averages) {
  if (!config.empty() && target.kind != TargetKind::kFile)
    throw UsageError("{}: has a configuration of its own; --config is for single files",
                     target.path.string());
  switch (target.kind) {
    case TargetKind::kHuggingFace:
      return from_hugging_face(target.path);
    case TargetKind::kCheckpoint: {
      // Absolute, so that the run above "step-00000010" given alone is found.
      const fs::path directory = fs::absolute(target.path).lexically_normal();
      return from_checkpoint(directory.has_filename() ? directory : directory.parent_path(),
                             read_committed_manifest(target.path), averages);
    }
    case TargetKind::kRun: {
      const FoundCheckpoint found = find_newest(fs::absolute(target.path));
      if (!found.found()) throw DataError("{}: holds no checkpoint yet", target.path.string());
      WeightSource source = from_checkpoint(found.path, found.manifest, averages);
      for (const PassedOver& other : found.passed_over)
        source.notes.push_back(other.path.string() + " passed over: " + other.reason);
      return source;
    }
    case TargetKind::kFile:
      return from_original(target.path, config);
  }
  throw InternalError("unknown kind of target");
}

}  // namespace mm::ckpt
