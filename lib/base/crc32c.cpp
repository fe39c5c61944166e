#include <array>
#include <cstring>

#include "lib/base/crc32c_kernels.h"
#include "lib/base/hash.h"

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

// The instruction takes three cycles but may begin every cycle, so three lanes of this size go side
// by side; their registers are then joined by advancing the earlier ones over the later lanes.
constexpr size_t kLaneBytes = 4096;
constexpr size_t kLaneBits = 8 * kLaneBytes;
using BitMatrix = std::array<uint32_t, 32>;  // column i: what bit i of a register becomes

constexpr uint32_t times(const BitMatrix& matrix, uint32_t value) {
  uint32_t sum = 0;
  for (uint32_t bit = 0; bit < 32; ++bit) sum ^= (value >> bit & 1) ? matrix[bit] : 0;
  return sum;
}

/// Row k: what byte k of a register becomes after kLaneBytes zero bytes.
constexpr std::array<std::array<uint32_t, 256>, 4> make_lane_tables() {
  BitMatrix advance{};  // by one zero bit, then squared to 2, 4, 8 ...
  advance[0] = kCastagnoliReflected;
  for (uint32_t bit = 1; bit < 32; ++bit) advance[bit] = 1u << (bit - 1);
  for (size_t bits = 1; bits < kLaneBits; bits *= 2) {
    BitMatrix twice{};
    for (size_t bit = 0; bit < 32; ++bit) twice[bit] = times(advance, advance[bit]);
    advance = twice;
  }
  std::array<std::array<uint32_t, 256>, 4> tables{};
  for (size_t row = 0; row < 4; ++row) {
    for (uint32_t byte = 0; byte < 256; ++byte)
      tables[row][byte] = times(advance, byte << (8 * row));
  }
  return tables;
}

constexpr auto kLaneTables = make_lane_tables();

uint32_t advance_lane(uint32_t crc) {
  return kLaneTables[0][crc & 255] ^ kLaneTables[1][crc >> 8 & 255] ^
         kLaneTables[2][crc >> 16 & 255] ^ kLaneTables[3][crc >> 24];
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint64_t crc_word(uint64_t crc, const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return _mm_crc32_u64(crc, word);
}
#endif

struct Usable {
  std::array<detail::Crc32cKernel, 3> kernels{};
  size_t count = 0;
};

Usable find_usable() {
  Usable found;
#if defined(__x86_64__)
  const bool sse42 = __builtin_cpu_supports("sse4.2") != 0;
  if (sse42 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
    found.kernels[found.count++] = {"avx512", detail::crc32c_avx512, detail::copy_crc32c_avx512};
  if (sse42) found.kernels[found.count++] = {"sse4.2", detail::crc32c_sse42, nullptr};
#endif
  found.kernels[found.count++] = {"portable", detail::crc32c_portable, nullptr};
  return found;
}

}  // namespace

namespace detail {

std::span<const Crc32cKernel> usable_crc32c() {
  static const Usable usable = find_usable();
  return std::span(usable.kernels).first(usable.count);
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                        uint32_t seed) {
  uint64_t crc = ~seed;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kLaneBytes; left -= 3 * kLaneBytes, at += 3 * kLaneBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      crc = crc_word(crc, at + i);
      second = crc_word(second, at + kLaneBytes + i);
      third = crc_word(third, at + 2 * kLaneBytes + i);
    }
    crc = advance_lane(static_cast<uint32_t>(crc)) ^ second;
    crc = advance_lane(static_cast<uint32_t>(crc)) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) crc = crc_word(crc, at);
  auto low = static_cast<uint32_t>(crc);
  for (; left > 0; --left, ++at) low = _mm_crc32_u8(low, static_cast<uint8_t>(*at));
  return ~low;
}
#endif

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
  static const auto run = detail::usable_crc32c().front().run;
  return run(bytes, seed);
}

}  // namespace mm
