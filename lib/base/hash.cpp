#include "lib/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace mm {
namespace {

constexpr uint32_t kCastagnoliReflected = 0x82F63B78u;
using Crc32cTables = std::array<std::array<uint32_t, 256>, 8>;

// Row 0 is the byte table; row k advances a byte by k further zero bytes, so that eight bytes go at
// once.
constexpr Crc32cTables make_tables() {
  Crc32cTables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kCastagnoliReflected : 0);
    tables[0][byte] = crc;
  }
  for (size_t row = 1; row < 8; ++row) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[row - 1][byte];
      tables[row][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  }
  return tables;
}

constexpr Crc32cTables kTables = make_tables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                        uint32_t seed) {
  uint64_t crc = ~seed;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto low = static_cast<uint32_t>(crc);
  for (; left > 0; --left, ++at) low = _mm_crc32_u8(low, static_cast<uint8_t>(*at));
  return ~low;
}
#endif

XXH128_hash_t xxh3_128(const void* data, size_t size) { return XXH3_128bits(data, size); }

std::string to_hex(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

namespace detail {

uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t seed) {
  uint32_t crc = ~seed;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::array<uint8_t, 8> b{};
    std::memcpy(b.data(), bytes.data() + at, 8);
    for (size_t i = 0; i < 4; ++i) b[i] ^= static_cast<uint8_t>(crc >> (8 * i));
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][b[i]];
  }
  for (; at < bytes.size(); ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(bytes[at])) & 255];
  }
  return ~crc;
}

}  // namespace detail

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t seed) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_sse42(bytes, seed);
#endif
  return detail::crc32c_portable(bytes, seed);
}

uint64_t xxh3_64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t xxh3_64(std::string_view text, uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::string xxh3_128_hex(std::span<const std::byte> bytes) {
  return to_hex(xxh3_128(bytes.data(), bytes.size()));
}

std::string xxh3_128_hex(std::string_view text) {
  return to_hex(xxh3_128(text.data(), text.size()));
}

}  // namespace mm
