#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/base/file.h"

namespace mm::ckpt::test {

/// The bytes of a safetensors file with this header text and `data_bytes` bytes of data; nothing is
/// checked.
inline std::string raw_safetensors(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  bytes += header;
  return bytes + std::string(data_bytes, '\x01');
}

/// Only a length and what follows.
inline std::string raw_with_length(uint64_t length, std::string_view rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(rest);
}

inline void write_raw(const std::filesystem::path& path, std::string_view bytes) {
  File file = File::create(path);
  file.write(bytes);
}

}  // namespace mm::ckpt::test
