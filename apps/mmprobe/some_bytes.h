#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>

namespace mm::mmprobe {

/// A size that can be meant: 1 byte to 16 TiB. Behind CLI::AsSizeValue, which takes -5 for 2^64
/// - 5.
inline CLI::Validator some_bytes() {
  return CLI::Range(uint64_t{1}, uint64_t{1} << 44).description("");
}

}  // namespace mm::mmprobe
