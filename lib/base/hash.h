#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace mm {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, as iSCSI RFC 3720): SSE4.2 instruction
/// where the CPU has it, table otherwise; both give the same value. `seed` is the CRC of what came
/// before, so blocks can be chained.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t seed = 0);
inline uint32_t crc32c(std::string_view text, uint32_t seed = 0) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())), seed);
}

namespace detail {
/// The table version, for CPUs without the instruction and as the reference of the other.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t seed);
}  // namespace detail

/// XXH3, 64 and 128 bits (xxHash). Not for secrets.
uint64_t xxh3_64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t xxh3_64(std::string_view text, uint64_t seed = 0);
/// 32 lower-case hexadecimal digits, most significant first.
std::string xxh3_128_hex(std::span<const std::byte> bytes);
std::string xxh3_128_hex(std::string_view text);

/// XXH3-128 of bytes that come in parts; equals xxh3_128_hex of them all. Not thread-safe.
class Xxh3Stream {
 public:
  Xxh3Stream();
  void add(std::string_view bytes);
  /// Of what was added so far.
  std::string hex() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace mm
