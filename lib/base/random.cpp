#include "lib/base/random.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

#include "lib/base/hash.h"

namespace mm {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53u;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u;
constexpr uint32_t kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;
// Keeps children by number apart from children whose name happens to be the same eight bytes.
constexpr uint64_t kNumberedChild = 0x6E756D6265726564u;

uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
uint32_t high32(uint64_t v) { return static_cast<uint32_t>(v >> 32); }
uint64_t join(uint32_t lower, uint32_t upper) { return (uint64_t{upper} << 32) | lower; }
double to_unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

Philox::Philox(uint64_t seed, std::string_view purpose) : key_(xxh3_64(purpose, seed)) {}

Philox Philox::child(uint64_t id) const {
  std::array<std::byte, 8> bytes{};
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(id >> (8 * i));
  return Philox(xxh3_64(std::span<const std::byte>(bytes), key_ ^ kNumberedChild));
}

Philox Philox::child(std::string_view name) const { return Philox(xxh3_64(name, key_)); }

std::array<uint32_t, 4> Philox::block(uint64_t index, uint64_t high) const {
  std::array<uint32_t, 4> c{low(index), high32(index), low(high), high32(high)};
  uint32_t k0 = low(key_);
  uint32_t k1 = high32(key_);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = uint64_t{kMultiplier0} * c[0];
    const uint64_t p1 = uint64_t{kMultiplier1} * c[2];
    c = {high32(p1) ^ c[1] ^ k0, low(p1), high32(p0) ^ c[3] ^ k1, low(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

uint64_t Philox::u64(uint64_t index) const {
  const auto words = block(index / 2);
  return index % 2 == 0 ? join(words[0], words[1]) : join(words[2], words[3]);
}

double Philox::uniform(uint64_t index) const { return to_unit(u64(index)); }

// A block gives one Box-Muller pair: element 2k is its cosine, 2k+1 its sine.
double Philox::normal(uint64_t index) const {
  const auto words = block(index / 2);
  const double u = 1.0 - to_unit(join(words[0], words[1]));  // (0, 1]: the logarithm is finite
  const double angle = 2.0 * std::numbers::pi * to_unit(join(words[2], words[3]));
  return std::sqrt(-2.0 * std::log(u)) * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

uint64_t Philox::below(uint64_t index, uint64_t bound) const {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(u64(index)) * bound) >> 64);
}

}  // namespace mm
