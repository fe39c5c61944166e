#include "lib/ckpt/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/diffusers_names.h"
#include "lib/ckpt/dit_embedders.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/original_names.h"
#include "lib/ckpt/peft.h"
#include "lib/ckpt/piece_reader.h"
#include "lib/ckpt/text_encoder_names.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

constexpr uint64_t kMaxConfigBytes = 16 << 20;
constexpr uint64_t kMaxSideBytes = 256 << 20;
constexpr std::array<std::string_view, 2> kNotWeights = {"optimizer.", "ema."};

Json read_config(const fs::path& path) {
  Json config = parse_json(read_file(path, kMaxConfigBytes), path.string(), {.max_depth = 32});
  if (!config.is_object()) throw DataError("{}: expected a JSON object", path.string());
  return config;
}

std::string model_type_of(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() ? type->get<std::string>() : "";
}

bool is_tied(const Json& config) {
  const Json text = config.value("text_config", Json::object());
  const auto flag = [](const Json& from) {
    const auto at = from.find("tie_word_embeddings");
    return at != from.end() && at->is_boolean() && at->get<bool>();
  };
  return flag(text) || (!text.contains("tie_word_embeddings") && flag(config));
}

/// Settings that belong to the model but hold no weights.
std::vector<fs::path> side_files_of(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    const bool settings = extension == ".json" || extension == ".model" || extension == ".txt" ||
                          extension == ".jinja" || extension == ".tiktoken";
    if (!settings || name == "config.json" || name.ends_with(".index.json")) continue;
    if (entry.is_regular_file() && entry.file_size() <= kMaxSideBytes)
      found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::byte> bytes_of(const TensorSource& tensor) {
  std::vector<std::byte> bytes;
  tensor.stream([&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  });
  return bytes;
}

/// C47: `copy` is the same tensor as `kept`; a copy that differs means that one of them is wrong.
void drop_copy(WeightSource& source, std::string_view copy, std::string_view kept,
               const std::string& origin) {
  const auto ends_with = [&](std::string_view tail) {
    return std::ranges::find_if(source.tensors,
                                [&](const TensorSource& t) { return t.name.ends_with(tail); });
  };
  const auto second = ends_with(copy), first = ends_with(kept);
  if (second == source.tensors.end() || first == source.tensors.end()) return;
  if (second->dtype != first->dtype || second->shape != first->shape ||
      bytes_of(*second) != bytes_of(*first)) {
    throw DataError(
        "{}: embeddings are tied, but {} and {} differ; set tie_word_embeddings to "
        "false, or remove the wrong one",
        origin, second->name, first->name);
  }
  source.notes.push_back(second->name + " dropped: equal to the tied embedding table");
  source.tensors.erase(second);
}

void sort_and_check(WeightSource& source, const std::string& origin) {
  std::ranges::sort(source.tensors, {}, &TensorSource::name);
  const auto twice =
      std::ranges::adjacent_find(source.tensors, std::ranges::equal_to{}, &TensorSource::name);
  if (twice != source.tensors.end())
    throw DataError("{}: two tensors are called {} once spellings are evened out", origin,
                    twice->name);
  if (model_type_of(source.config) == "t5") {
    drop_copy(source, kT5TableCopy, kT5Table, origin);
  } else if (is_tied(source.config)) {
    drop_copy(source, "lm_head.weight", "embed_tokens.weight", origin);
  }
}

TensorSource stream_of(const std::string& name, const HfTensor& tensor) {
  return {.name = name,
          .dtype = tensor.entry->dtype,
          .shape = tensor.entry->shape,
          .stream = [file = tensor.file, entry = tensor.entry](const ByteSink& sink) {
            stream_entry(*file, *entry, sink);
          }};
}

/// The published name of a tensor of the model that `config` describes; nothing: to be dropped.
std::optional<std::string> name_of(const Json& config, std::string_view stored) {
  if (diffusers_class(config) == "AutoencoderKL") return published_vae_name(stored);
  const std::string type = model_type_of(config);
  const auto name = published_name(type, stored);
  return name ? published_text_encoder_name(type, *name) : std::nullopt;
}

/// Older files hold the linear layers of a VAE's attention as 1x1 convolutions.
void flatten_attention(TensorSource& tensor) {
  const std::vector<uint64_t>& shape = tensor.shape;
  if (shape.size() == 4 && shape[2] == 1 && shape[3] == 1 &&
      tensor.name.find(".mid_block.attentions.") != std::string::npos)
    tensor.shape.resize(2);
}

void add_tensors(WeightSource& source, const HfWeights& weights) {
  const bool vae = diffusers_class(source.config) == "AutoencoderKL";
  for (const auto& [stored, tensor] : weights.tensors()) {
    const auto name = name_of(source.config, stored);
    if (!name) {
      source.notes.push_back(stored + " dropped: computed, or of another task's head");
      continue;
    }
    source.tensors.push_back(stream_of(*name, tensor));
    if (vae) flatten_attention(source.tensors.back());
  }
}

WeightSource from_hugging_face(const fs::path& directory) {
  if (!fs::exists(directory / "config.json") && fs::exists(directory / "adapter_config.json"))
    throw DataError("{}: an adapter without its model; use mmckpt merge BASE {} OUT",
                    directory.string(), directory.string());
  const auto weights = std::make_shared<HfWeights>(HfWeights::open(directory));
  WeightSource source{.config = read_config(directory / "config.json"),
                      .side_files = side_files_of(directory),
                      .notes = weights->notes(),
                      .open_files = {weights}};
  add_tensors(source, *weights);
  sort_and_check(source, directory.string());
  drop_repeated_embedders(source);
  return source;
}

/// A checkpoint of the papers' own code, one file.
WeightSource from_original(const fs::path& path, const fs::path& config) {
  const auto file = std::make_shared<SafetensorsFile>(SafetensorsFile::open(path));
  WeightSource source{.open_files = {file}};
  for (const TensorEntry& entry : file->tensors())
    source.tensors.push_back(stream_of(entry.name, {file.get(), &entry}));
  const auto family = original_family(source.tensors);
  if (!family) {
    throw DataError(
        "{}: a lone safetensors file does not say which model it is; expected an original DiT, "
        "PixArt or SD3 checkpoint, a directory with config.json beside it, or one of our "
        "checkpoints",
        path.string());
  }
  const int64_t grid = original_grid(source.tensors);
  source.tensors = to_diffusers(std::move(source.tensors), *family, path.string(), source.notes);
  source.config = config.empty() ? implied_config(source.tensors, *family, grid, path.string())
                                 : read_config(config);
  if (diffusers_class(source.config) != diffusers_class(*family))
    throw DataError("{}: holds a {}, {} describes a {}", path.string(), diffusers_class(*family),
                    config.string(), diffusers_class(source.config));
  settle_config(source.config, source.tensors, *family);
  sort_and_check(source, path.string());
  return source;
}

/// What mmtrain's resume contract says of adapters, vocabulary and training.
void read_contract(WeightSource& source, const Json& state) {
  const Json contract = state.value("contract", Json::object());
  if (const auto lora = contract.find("lora"); lora != contract.end()) {
    const Json rank = lora->value("rank", Json()), alpha = lora->value("alpha", Json());
    if (!rank.is_number_integer() || rank < 1 || !alpha.is_number())
      throw DataError("the checkpoint's contract has adapters without a rank or alpha");
    source.low_rank = LowRank{rank.get<int64_t>(), alpha.get<double>()};
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
uint64_t real_vocab_of(const Json& state, const fs::path& run) {
  const Json contract = state.value("contract", Json::object());
  const Json rows = contract.value("model.vocab", Json());
  const fs::path data = run / "data.json";
  if (!rows.is_array() || rows.size() != 2 || rows[1] == 1 || !fs::is_regular_file(data)) return 0;
  const Json tokenizer = read_json_file(data).value("tokenizer", Json::object());
  const Json ids = tokenizer.value("vocab_size", Json());
  if (!ids.is_number_unsigned() || !rows[0].is_number_unsigned()) return 0;
  return std::max(ids.get<uint64_t>(), rows[0].get<uint64_t>());
}

WeightSource from_checkpoint(const fs::path& directory, const Manifest& manifest) {
  const auto config = manifest.state.find("config");
  if (config == manifest.state.end() || !config->is_object())
    throw DataError(
        "{}: its state holds no model configuration; expected one that mmtrain or "
        "mmckpt convert wrote",
        directory.string());
  const auto reader = std::make_shared<PieceReader>(directory, manifest);
  WeightSource source{.config = *config, .open_files = {reader}};
  read_contract(source, manifest.state);
  const fs::path run = directory.parent_path().parent_path();
  source.real_vocab = real_vocab_of(manifest.state, run);
  for (const char* name : {"tokenizer.model", "tokenizer.json"})
    if (fs::is_regular_file(run / name)) source.side_files.push_back(run / name);
  if (fs::is_directory(run / "hf")) {
    for (const fs::path& file : side_files_of(run / "hf")) source.side_files.push_back(file);
  }
  for (const TensorRecord& record : reader->manifest().tensors) {
    if (std::ranges::any_of(kNotWeights,
                            [&](std::string_view p) { return record.name.starts_with(p); }))
      continue;
    source.tensors.push_back({.name = record.name,
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

WeightSource open_weights(const Target& target, const fs::path& config) {
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
                             read_committed_manifest(target.path));
    }
    case TargetKind::kRun: {
      const FoundCheckpoint found = find_newest(fs::absolute(target.path));
      if (!found.found()) throw DataError("{}: holds no checkpoint yet", target.path.string());
      WeightSource source = from_checkpoint(found.path, found.manifest);
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
