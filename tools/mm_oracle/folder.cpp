#include "tools/mm_oracle/folder.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/model/hf_load.h"

namespace mm::oracle {
namespace {

bool is_leaf(const Json& value) {
  if (value.is_object()) return value.empty();
  if (!value.is_array()) return true;
  return value.empty() ||
         std::ranges::any_of(value, [](const Json& item) { return !item.is_object(); });
}

void collect_leaves(const Json& value, const std::string& path,
                    const std::set<std::string>& touched, std::vector<std::string>& out) {
  if (touched.contains(path)) return;
  if (is_leaf(value)) {
    out.push_back(path);
    return;
  }
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "/" + key; };
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      collect_leaves(value[i], below(std::to_string(i)), touched, out);
    return;
  }
  for (const auto& [key, child] : value.items()) collect_leaves(child, below(key), touched, out);
}

const Json* child_of(const Json& value, const std::string& key) {
  if (value.is_object()) return value.contains(key) ? &value.at(key) : nullptr;
  if (!value.is_array() || key.empty() || key.size() > 9 ||
      !std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; })) {
    return nullptr;
  }
  const auto index = static_cast<size_t>(std::stoul(key));
  return index < value.size() ? &value[index] : nullptr;
}

}  // namespace

Folder::Folder(std::filesystem::path directory) : directory_(std::move(directory)) {
  expected_ = read_json_file(directory_ / "expected.json");
  if (!expected_.is_object())
    throw DataError("{}: expected a JSON object", (directory_ / "expected.json").string());
  const auto io = directory_ / "io.safetensors";
  if (std::filesystem::exists(io)) io_ = ckpt::SafetensorsFile::open(io);
}

std::string Folder::what() const {
  const Json* what = find("what");
  return what != nullptr && what->is_string() ? what->get<std::string>() : "";
}

const Json* Folder::find(const std::string& path) const {
  const Json* value = &expected_;
  size_t begin = 0;
  while (value != nullptr && begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    value = child_of(*value, path.substr(begin, end - begin));
    begin = end + 1;
  }
  return value;
}

bool Folder::has(const std::string& path) const { return find(path) != nullptr; }

const Json& Folder::take(const std::string& path) {
  const Json* value = find(path);
  if (value == nullptr) throw DataError("{}: no {}", (directory_ / "expected.json").string(), path);
  touched_paths_.insert(path);
  return *value;
}

double Folder::number(const std::string& path) {
  const Json& value = take(path);
  if (!value.is_number())
    throw DataError("{}: {} is not a number", (directory_ / "expected.json").string(), path);
  return value.get<double>();
}

std::vector<double> Folder::numbers(const std::string& path) {
  const Json& value = take(path);
  if (!value.is_array() ||
      !std::ranges::all_of(value, [](const Json& item) { return item.is_number(); })) {
    throw DataError("{}: {} is not a list of numbers", (directory_ / "expected.json").string(),
                    path);
  }
  return value.get<std::vector<double>>();
}

std::set<std::string> Folder::words(const std::string& path) {
  const Json& value = take(path);
  if (!value.is_array() ||
      !std::ranges::all_of(value, [](const Json& item) { return item.is_string(); })) {
    throw DataError("{}: {} is not a list of strings", (directory_ / "expected.json").string(),
                    path);
  }
  return value.get<std::set<std::string>>();
}

std::vector<std::string> Folder::keys(const std::string& path) const {
  const Json* value = find(path);
  if (value == nullptr || !value->is_object()) {
    throw DataError("{}: {} is not an object", (directory_ / "expected.json").string(), path);
  }
  std::vector<std::string> keys;
  for (const auto& [key, child] : value->items()) keys.push_back(key);
  return keys;
}

size_t Folder::count(const std::string& path) const {
  const Json* value = find(path);
  if (value == nullptr || !value->is_array()) {
    throw DataError("{}: {} is not a list", (directory_ / "expected.json").string(), path);
  }
  return value->size();
}

void Folder::set_aside(std::initializer_list<const char*> paths) {
  for (const char* path : paths) touched_paths_.insert(path);
}

bool Folder::has_tensor(const std::string& name) const { return io_ && io_->find(name) != nullptr; }

at::Tensor Folder::tensor(const std::string& name) {
  if (!io_) throw DataError("{}: no io.safetensors", directory_.string());
  at::Tensor tensor = model::to_tensor(*io_, io_->at(name));
  touched_tensors_.insert(name);
  return tensor;
}

std::vector<std::string> Folder::tensor_names(const std::string& prefix) const {
  std::vector<std::string> names;
  if (!io_) return names;
  for (const ckpt::TensorEntry& entry : io_->tensors()) {
    if (entry.name.starts_with(prefix)) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> Folder::untouched() const {
  std::vector<std::string> names;
  collect_leaves(expected_, "", touched_paths_, names);
  for (const std::string& name : tensor_names("")) {
    if (!touched_tensors_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace mm::oracle
