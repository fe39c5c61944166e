#include "lib/ckpt/hf_index.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/ckpt/json_scanner.h"

namespace mm::ckpt {
namespace {

constexpr std::array<std::string_view, 3> kBases = {"model", "diffusion_pytorch_model",
                                                    "adapter_model"};
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 28;

using WeightMap = std::map<std::string, std::string>;

std::filesystem::path single_name(std::string_view base) {
  return fmt::format("{}.safetensors", base);
}
std::filesystem::path index_name(std::string_view base) {
  return fmt::format("{}.safetensors.index.json", base);
}

// A file name from the index: relative, no way out of the directory, not cut short by a zero byte.
void check_name(const std::string& name, const std::string& origin) {
  const std::filesystem::path path(name);
  bool inside = !name.empty() && path.is_relative() && name.find('\0') == std::string::npos;
  for (const auto& part : path) inside = inside && part != "..";
  if (!inside) {
    throw DataError("{}: file name {} does not stay inside the directory", origin,
                    printable_name(name));
  }
}

WeightMap read_weight_map(const Json& index, const std::string& origin) {
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw DataError("{}: an object with \"weight_map\" expected", origin);
  }
  WeightMap map;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string()) {
      throw DataError("{}: weight_map: tensor {}: a file name expected", origin,
                      printable_name(tensor));
    }
    check_name(file.get_ref<const std::string&>(), origin);
    map[tensor] = file.get<std::string>();
  }
  if (map.empty()) throw DataError("{}: weight_map is empty", origin);
  return map;
}

// N of "name-00003-of-000NN.safetensors", 0 if the name has no such form.
int shard_count(const std::string& name) {
  const size_t of = name.rfind("-of-");
  int count = 0;
  if (of == std::string::npos || std::sscanf(name.c_str() + of, "-of-%9d", &count) != 1) return 0;
  return count;
}

void check_shard_count(const std::set<std::string>& names, const std::string& origin) {
  const int promised = shard_count(*names.begin());
  if (promised > 0 && names.size() < static_cast<size_t>(promised)) {
    throw DataError("{}: names {} files, but {} says that there are {}", origin, names.size(),
                    printable_name(*names.begin()), promised);
  }
}

std::optional<uint64_t> stated_total(const Json& index) {
  if (!index.contains("metadata") || !index["metadata"].is_object()) return std::nullopt;
  const auto total = index["metadata"].find("total_size");
  if (total == index["metadata"].end() || !total->is_number()) return std::nullopt;
  const double value = total->get<double>();
  // Some writers state it as a float; beyond 2^53 neither is exact.
  if (value < 0 || value > 0x1p63 || value != std::floor(value)) return std::nullopt;
  return total->is_number_float() ? static_cast<uint64_t>(value) : total->get<uint64_t>();
}

}  // namespace

std::string pickled_weights_advice(const std::filesystem::path& directory) {
  std::error_code error;
  std::set<std::string> names;
  for (std::filesystem::directory_iterator item(directory, error), end; !error && item != end;
       item.increment(error)) {
    const std::string kind = item->path().extension().string(),
                      name = item->path().filename().string();
    const bool weights = name.starts_with("pytorch_model") || name.starts_with("model") ||
                         name.starts_with("diffusion_pytorch_model") ||
                         name.starts_with("adapter_model") || name.starts_with("consolidated");
    if (weights && (kind == ".bin" || kind == ".pt" || kind == ".pth" || kind == ".ckpt"))
      names.insert(name);
  }
  if (names.empty()) return "";
  return fmt::format("; {} is not read, save the model as safetensors",
                     printable_name(*names.begin()));
}

bool HfWeights::looks_like(const std::filesystem::path& directory) {
  for (const std::string_view base : kBases) {
    if (std::filesystem::exists(directory / single_name(base)) ||
        std::filesystem::exists(directory / index_name(base))) {
      return true;
    }
  }
  return false;
}

HfWeights HfWeights::open(const std::filesystem::path& directory) {
  HfWeights weights;
  weights.directory_ = directory;
  for (const std::string_view base : kBases) {
    const auto single = directory / single_name(base);
    const auto index = directory / index_name(base);
    if (std::filesystem::exists(single)) {
      weights.open_single(single);
    } else if (std::filesystem::exists(index)) {
      weights.open_indexed(index);
    } else {
      continue;
    }
    weights.note_strays(std::string(base));
    weights.note_dtype();
    return weights;
  }
  throw DataError(
      "{}: no safetensors weights in the directory, expected model.safetensors (diffusers: "
      "diffusion_pytorch_model.safetensors, PEFT: adapter_model.safetensors) or its index{}",
      directory.string(), pickled_weights_advice(directory));
}

void HfWeights::open_single(const std::filesystem::path& path) { add_file(path); }

void HfWeights::open_indexed(const std::filesystem::path& index_path) {
  const std::string origin = index_path.string();
  const Json index = parse_json(read_file(index_path, kMaxIndexBytes), origin, {.max_depth = 8});
  const WeightMap map = read_weight_map(index, origin);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  check_shard_count(names, origin);
  for (const std::string& name : names) {
    if (!std::filesystem::is_regular_file(directory_ / name)) {
      throw DataError("{}: file {} is named there, but is missing or not a file", origin,
                      printable_name(name));
    }
    add_file(directory_ / name);
  }
  for (const auto& [tensor, file] : map) {
    const HfTensor* found = find(tensor);
    if (found == nullptr || found->file->path() != directory_ / file) {
      throw DataError("{}: tensor {} is not in {}", origin, printable_name(tensor),
                      printable_name(file));
    }
  }
  for (const auto& [name, tensor] : tensors_) {
    if (!map.contains(name)) {
      throw DataError("{}: tensor {} of {} is not in weight_map", origin, printable_name(name),
                      tensor.file->path().string());
    }
  }
  const std::optional<uint64_t> total = stated_total(index);
  if (total && *total != tensor_bytes()) {
    notes_.push_back(
        fmt::format("{}: total_size is {}, tensors have {} bytes", origin, *total, tensor_bytes()));
  }
}

void HfWeights::add_file(const std::filesystem::path& path) {
  files_.push_back(std::make_unique<SafetensorsFile>(SafetensorsFile::open(path)));
  const SafetensorsFile& file = *files_.back();
  for (const std::string& note : file.notes()) notes_.push_back(path.string() + ": " + note);
  for (const TensorEntry& entry : file.tensors()) {
    const auto [at, added] = tensors_.emplace(entry.name, HfTensor{&file, &entry});
    if (!added) {
      throw DataError("{}: tensor {} is also in {}", path.string(), printable_name(entry.name),
                      at->second.file->path().string());
    }
  }
}

void HfWeights::note_strays(const std::string& base) {
  std::set<std::string> used;
  for (const auto& file : files_) used.insert(file->path().filename().string());
  for (const auto& item : std::filesystem::directory_iterator(directory_)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with(base) && name.ends_with(".safetensors") && !used.contains(name)) {
      notes_.push_back(fmt::format("{}: not named in the index, ignored", item.path().string()));
    }
  }
}

void HfWeights::note_dtype() {
  const auto path = directory_ / "config.json";
  if (!std::filesystem::is_regular_file(path)) return;
  const Json config = read_json_file(path);
  static const std::map<std::string, DType> kTorchNames = {{"float32", DType::kF32},
                                                           {"bfloat16", DType::kBF16},
                                                           {"float16", DType::kF16},
                                                           {"float64", DType::kF64}};
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (!config.is_object() || !config.contains(key) || !config[key].is_string()) continue;
    const auto wanted = kTorchNames.find(config[key].get<std::string>());
    if (wanted == kTorchNames.end()) return;
    size_t others = 0;
    for (const auto& [name, tensor] : tensors_)
      others += tensor.entry->dtype != wanted->second ? 1 : 0;
    if (others > 0) {
      notes_.push_back(fmt::format("{}: {} is {}, {} of {} tensors have another dtype",
                                   path.string(), key, wanted->first, others, tensors_.size()));
    }
    return;
  }
}

const HfTensor* HfWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const HfTensor& HfWeights::at(std::string_view name) const {
  const HfTensor* tensor = find(name);
  if (tensor == nullptr) {
    throw DataError("{}: no tensor {} among {}", directory_.string(), printable_name(name),
                    tensors_.size());
  }
  return *tensor;
}

uint64_t HfWeights::tensor_bytes() const {
  uint64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor.entry->size_bytes();
  return total;
}

}  // namespace mm::ckpt
