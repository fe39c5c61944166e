#pragma once
// Safetensors files changed behind their owners' backs.
#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/safetensors.h"
#include "lib/ckpt/safetensors_writer.h"

namespace mm::run::test {

using Tensors = std::map<std::string, at::Tensor>;

inline Tensors read_tensors(const std::filesystem::path& path) {
  const auto file = ckpt::SafetensorsFile::open(path);
  Tensors tensors;
  for (const ckpt::TensorEntry& entry : file.tensors()) {
    at::ScalarType type = at::kFloat;
    if (entry.dtype == ckpt::DType::kI64) type = at::kLong;
    if (entry.dtype == ckpt::DType::kBF16) type = at::kBFloat16;
    if (entry.dtype == ckpt::DType::kF16) type = at::kHalf;
    at::Tensor value =
        at::empty(std::vector<int64_t>(entry.shape.begin(), entry.shape.end()), type);
    const std::vector<std::byte> bytes = file.read(entry);
    std::memcpy(value.mutable_data_ptr(), bytes.data(), bytes.size());
    tensors[entry.name] = value;
  }
  return tensors;
}

/// Writes the file anew after change(tensors, metadata).
template <typename Change>
void rewrite_tensors(const std::filesystem::path& path, const Change& change) {
  Tensors tensors = read_tensors(path);
  ckpt::Metadata metadata = ckpt::SafetensorsFile::open(path).metadata();
  change(tensors, metadata);
  std::vector<ckpt::TensorSource> sources;
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.contiguous();
    ckpt::DType type = ckpt::DType::kF32;
    if (tensor.scalar_type() == at::kLong) type = ckpt::DType::kI64;
    if (tensor.scalar_type() == at::kBFloat16) type = ckpt::DType::kBF16;
    if (tensor.scalar_type() == at::kHalf) type = ckpt::DType::kF16;
    sources.push_back(
        {.name = name,
         .dtype = type,
         .shape = {tensor.sizes().begin(), tensor.sizes().end()},
         .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  ckpt::write_safetensors(path, sources, metadata);
}

/// Makes an encoded set's manifest say what its units' sizes are.
inline void restate_bytes(const std::filesystem::path& set) {
  Json manifest = read_json_file(set / "manifest.json");
  for (Json& unit : manifest["units"])
    unit["bytes"] = std::filesystem::file_size(set / unit["file"].get<std::string>());
  write_file_atomic(set / "manifest.json", manifest.dump());
}

/// Flips a bit of the byte at `offset`, from the end where it is negative.
inline void flip_bit(const std::filesystem::path& path, int64_t offset) {
  std::string bytes = read_file(path);
  const int64_t place = offset < 0 ? std::ssize(bytes) + offset : offset;
  bytes[static_cast<size_t>(place)] = static_cast<char>(bytes[static_cast<size_t>(place)] ^ 1);
  write_file_atomic(path, bytes);
}

}  // namespace mm::run::test
