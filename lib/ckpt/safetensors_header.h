#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/dtype.h"

namespace mm::ckpt {

/// Longest header that readers and writers of the format agree on, in bytes.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

/// One tensor of a file: row-major, little-endian, packed. `begin` and `end` count from the start
/// of the data section.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size_bytes() const { return end - begin; }
};

using Metadata = std::map<std::string, std::string>;

/// What the header of a file says. `tensors` is in order of offsets; `notes` are oddities that are
/// accepted but worth a line.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  std::vector<std::string> notes;
};

/// Parses the JSON header of a file whose data section has `data_bytes` bytes. Strict: every entry
/// has known dtype, shape and offsets; size = shape x dtype; no name twice; the tensors fill the
/// data section from 0 to its end with no hole and no overlap. Throws DataError that begins with
/// `origin` and names the tensor. Allocates only in proportion to the text. O(n log n).
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           std::string_view origin);

}  // namespace mm::ckpt
