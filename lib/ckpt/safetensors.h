#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/file.h"
#include "lib/ckpt/safetensors_header.h"

namespace mm::ckpt {

/// A safetensors file, read by position: opening reads the header only, tensors come when asked
/// for, and a file that shrinks or fails under us is an error, not a signal. Any alignment of the
/// data is fine. Movable; const members may be called from any thread.
///
///     const auto file = SafetensorsFile::open("model.safetensors");
///     std::vector<std::byte> w = file.read(file.at("model.embed_tokens.weight"));
class SafetensorsFile {
 public:
  /// Throws IoError if the file cannot be read, DataError (naming file and tensor) if it breaks the
  /// format in any way.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  /// In order of offsets.
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  const std::vector<std::string>& notes() const { return header_.notes; }
  uint64_t file_bytes() const { return data_start_ + data_bytes_; }
  /// Offset of the data section in the file: 8 + the header's length.
  uint64_t data_start() const { return data_start_; }

  /// Null if there is no such tensor.
  const TensorEntry* find(std::string_view name) const;
  /// Throws DataError, naming file and tensor.
  const TensorEntry& at(std::string_view name) const;

  /// All bytes of a tensor of this file; `out` must have exactly that size.
  void read(const TensorEntry& entry, std::span<std::byte> out) const;
  std::vector<std::byte> read(const TensorEntry& entry) const;
  /// `out.size()` bytes from `offset` bytes into the tensor.
  void read_range(const TensorEntry& entry, uint64_t offset, std::span<std::byte> out) const;

 private:
  SafetensorsFile(File file, SafetensorsHeader header, uint64_t data_start, uint64_t data_bytes);

  File file_;
  SafetensorsHeader header_;
  uint64_t data_start_;
  uint64_t data_bytes_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace mm::ckpt
