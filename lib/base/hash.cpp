#include "lib/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "lib/base/error.h"

namespace mm {
namespace {

XXH128_hash_t xxh3_128(const void* data, size_t size) { return XXH3_128bits(data, size); }

std::string to_hex(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

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

Xxh3Stream::Xxh3Stream() : state_(XXH3_createState()) {
  if (!state_ || XXH3_128bits_reset(state_.get()) != XXH_OK)
    throw InternalError("no memory for a hash state");
}

void Xxh3Stream::add(std::string_view bytes) {
  if (XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()) != XXH_OK)
    throw InternalError("hash of {} bytes failed", bytes.size());
}

std::string Xxh3Stream::hex() const { return to_hex(XXH3_128bits_digest(state_.get())); }

void Xxh3Stream::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace mm
