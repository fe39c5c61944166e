#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/model/hf_load.h"

namespace mm::model::test {

/// A tensor of a safetensors file in memory.
struct StoredTensor {
  std::string name;
  at::Tensor value;
};

inline std::vector<StoredTensor> read_stored(const std::filesystem::path& directory) {
  const auto weights = ckpt::HfWeights::open(directory);
  std::vector<StoredTensor> out;
  for (const auto& [name, tensor] : weights.tensors())
    out.push_back({name, to_tensor(*tensor.file, *tensor.entry)});
  return out;
}

inline void write_stored(const std::filesystem::path& file,
                         const std::vector<StoredTensor>& tensors) {
  std::vector<ckpt::TensorSource> sources;
  std::vector<at::Tensor> kept;
  for (const StoredTensor& tensor : tensors) {
    kept.push_back(tensor.value.contiguous());
    const bool whole = tensor.value.scalar_type() == at::kLong;
    sources.push_back({.name = tensor.name,
                       .dtype = whole ? ckpt::DType::kI64 : ckpt::DType::kF32,
                       .shape = {tensor.value.sizes().begin(), tensor.value.sizes().end()},
                       .bytes = {static_cast<const std::byte*>(kept.back().const_data_ptr()),
                                 kept.back().nbytes()}});
  }
  ckpt::write_safetensors(file, sources);
}

/// A directory like `from` with its tensors changed.
inline void copy_changed(const std::filesystem::path& from, const std::filesystem::path& to,
                         const std::function<void(std::vector<StoredTensor>&)>& change) {
  std::filesystem::create_directories(to);
  std::filesystem::copy_file(from / "config.json", to / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  auto tensors = read_stored(from);
  change(tensors);
  write_stored(to / "model.safetensors", tensors);
}

}  // namespace mm::model::test
