#include "lib/ckpt/weight_source.h"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/piece_reader.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

constexpr uint64_t kMaxConfigBytes = 16 << 20;
constexpr uint64_t kMaxSideBytes = 256 << 20;
constexpr std::array<std::string_view, 2> kNotWeights = {"optimizer.", "ema."};

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

/// C47: the head of a tied model is the table; a copy that differs means that one of them is wrong.
void drop_tied_head(WeightSource& source, const std::string& origin) {
  const auto ends_with = [&](std::string_view tail) {
    return std::ranges::find_if(source.tensors,
                                [&](const TensorSource& t) { return t.name.ends_with(tail); });
  };
  const auto head = ends_with("lm_head.weight"), table = ends_with("embed_tokens.weight");
  if (head == source.tensors.end() || table == source.tensors.end()) return;
  if (head->dtype != table->dtype || head->shape != table->shape ||
      bytes_of(*head) != bytes_of(*table)) {
    throw DataError(
        "{}: embeddings are tied, but {} and {} differ; set tie_word_embeddings to "
        "false, or remove the wrong one",
        origin, head->name, table->name);
  }
  source.notes.push_back(head->name + " dropped: equal to the tied embedding table");
  source.tensors.erase(head);
}

void sort_and_check(WeightSource& source, const std::string& origin) {
  std::ranges::sort(source.tensors, {}, &TensorSource::name);
  const auto twice =
      std::ranges::adjacent_find(source.tensors, std::ranges::equal_to{}, &TensorSource::name);
  if (twice != source.tensors.end())
    throw DataError("{}: two tensors are called {} once spellings are evened out", origin,
                    twice->name);
  if (is_tied(source.config)) drop_tied_head(source, origin);
}

WeightSource from_hugging_face(const fs::path& directory) {
  const auto weights = std::make_shared<HfWeights>(HfWeights::open(directory));
  const fs::path config = directory / "config.json";
  WeightSource source{
      .config = parse_json(read_file(config, kMaxConfigBytes), config.string(), {.max_depth = 32}),
      .side_files = side_files_of(directory),
      .notes = weights->notes(),
      .open_files = weights};
  const std::string type = model_type_of(source.config);
  for (const auto& [stored, tensor] : weights->tensors()) {
    const auto name = published_name(type, stored);
    if (!name) {
      source.notes.push_back(stored + " dropped: computed, not learned");
      continue;
    }
    source.tensors.push_back(
        {.name = *name,
         .dtype = tensor.entry->dtype,
         .shape = tensor.entry->shape,
         .stream = [file = tensor.file, entry = tensor.entry](const ByteSink& sink) {
           stream_entry(*file, *entry, sink);
         }});
  }
  sort_and_check(source, directory.string());
  return source;
}

WeightSource from_checkpoint(const fs::path& directory, const Manifest& manifest) {
  const auto config = manifest.state.find("config");
  if (config == manifest.state.end() || !config->is_object())
    throw DataError(
        "{}: its state holds no model configuration; expected one that mmtrain or "
        "mmckpt convert wrote",
        directory.string());
  const auto reader = std::make_shared<PieceReader>(directory, manifest);
  WeightSource source{.config = *config, .open_files = reader};
  const fs::path run = directory.parent_path().parent_path();
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

}  // namespace

WeightSource open_weights(const Target& target) {
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
      break;
  }
  throw DataError(
      "{}: a lone safetensors file does not say which model it is; expected a directory "
      "with config.json beside it, or one of our checkpoints",
      target.path.string());
}

}  // namespace mm::ckpt
