#include "lib/ckpt/weight_source_parts.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/ckpt/piece_reader.h"
#include "lib/ckpt/text_encoder_names.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

constexpr uint64_t kMaxSideBytes = 256 << 20;

bool is_tied(const Json& config) {
  const Json text = config.value("text_config", Json::object());
  const auto flag = [](const Json& from) {
    const auto at = from.find("tie_word_embeddings");
    return at != from.end() && at->is_boolean() && at->get<bool>();
  };
  return flag(text) || (!text.contains("tie_word_embeddings") && flag(config));
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

}  // namespace

std::string model_type_of(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() ? type->get<std::string>() : "";
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

}  // namespace mm::ckpt
