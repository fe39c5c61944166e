#include "lib/ckpt/block_checksums.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace mm::ckpt {

struct ChecksumStream::Xxh3State {
  XXH3_state_t* state = XXH3_createState();
  ~Xxh3State() { XXH3_freeState(state); }
};

ChecksumStream::ChecksumStream() : xxh3_(std::make_unique<Xxh3State>()) {
  MM_CHECK(xxh3_->state != nullptr, "no memory for a hash state");
  XXH3_128bits_reset(xxh3_->state);
}
ChecksumStream::ChecksumStream(ChecksumStream&&) noexcept = default;
ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::update(std::span<const std::byte> bytes) {
  sums_.size_bytes += bytes.size();
  // Both sums block by block, so that the second finds the bytes in the cache.
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<uint64_t>(bytes.size(), kBlockBytes - block_filled_));
    XXH3_128bits_update(xxh3_->state, part.data(), part.size());
    block_crc_ = crc32c(part, block_crc_);
    block_filled_ += part.size();
    bytes = bytes.subspan(part.size());
    if (block_filled_ == kBlockBytes) {
      sums_.block_crc32c.push_back(block_crc_);
      block_filled_ = 0;
      block_crc_ = 0;
    }
  }
}

FileChecksums ChecksumStream::finish() {
  if (block_filled_ > 0) sums_.block_crc32c.push_back(block_crc_);
  const XXH128_hash_t hash = XXH3_128bits_digest(xxh3_->state);
  sums_.xxh3_128 = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  return std::move(sums_);
}

}  // namespace mm::ckpt
