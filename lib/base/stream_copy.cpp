#include "lib/base/stream_copy.h"

#include <algorithm>
#include <cstring>

#include "lib/base/crc32c_kernels.h"
#include "lib/base/hash.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace mm {
namespace {

constexpr size_t kBlockBytes = size_t{12} << 10;  // whole lanes of crc32c_sse42

#if defined(__x86_64__)
constexpr size_t kLineBytes = 64;

/// Whole lines past the caches; `to` begins a line. Returns the bytes copied.
size_t copy_lines(const std::byte* from, std::byte* to, size_t bytes) {
  const size_t whole = bytes / kLineBytes * kLineBytes;
  for (size_t at = 0; at < whole; at += kLineBytes) {
    __m128i parts[4];
    std::memcpy(parts, from + at, kLineBytes);
    for (size_t i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + i, parts[i]);
  }
  return whole;
}

/// Streaming stores are ordered by nothing but this.
void settle() { _mm_sfence(); }

size_t bytes_to_line(const std::byte* to) {
  return (kLineBytes - reinterpret_cast<uintptr_t>(to) % kLineBytes) % kLineBytes;
}
#else
size_t copy_lines(const std::byte*, std::byte*, size_t) { return 0; }
void settle() {}
size_t bytes_to_line(const std::byte*) { return 0; }
#endif

/// Block by block, each used when it was copied and is in the first-level cache.
template <typename Use>
void copy_blocks(std::span<const std::byte> from, std::byte* to, Use use) {
  for (size_t at = 0, count = 0; at < from.size(); at += count) {
    count = std::min(kBlockBytes, from.size() - at);
    const auto block = from.subspan(at, count);
    const size_t whole = copy_lines(block.data(), to + at, count);
    std::memcpy(to + at + whole, block.data() + whole, count - whole);
    use(block);
  }
}

}  // namespace

void stream_copy(std::span<const std::byte> from, std::byte* to) {
  const size_t head = bytes_to_line(to);
  if (from.size() < kStreamBytes) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return;
  }
  std::memcpy(to, from.data(), head);
  copy_blocks(from.subspan(head), to + head, [](auto) {});
  settle();
}

uint32_t stream_copy_crc32c(std::span<const std::byte> from, std::byte* to, uint32_t seed) {
  return detail::stream_copy_by(detail::usable_crc32c().front(), from, to, seed);
}

uint32_t detail::stream_copy_by(const Crc32cKernel& kernel, std::span<const std::byte> from,
                                std::byte* to, uint32_t seed) {
  const auto plain = [&](std::span<const std::byte> part) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    seed = kernel.run(part, seed);
    to += part.size();
    from = from.subspan(part.size());
  };
  if (from.size() < kStreamBytes) {
    plain(from);
    return seed;
  }
  plain(from.first(bytes_to_line(to)));
  if (kernel.copy != nullptr) {
    const size_t whole = from.size() / kFoldBytes * kFoldBytes;
    seed = kernel.copy(from.first(whole), to, seed);
    from = from.subspan(whole);
    to += whole;
    plain(from);
  } else {
    copy_blocks(from, to, [&](auto block) { seed = kernel.run(block, seed); });
  }
  settle();
  return seed;
}

}  // namespace mm
