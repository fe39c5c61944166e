#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mm::ckpt {

/// Files are checked in blocks of this size, counted from the first byte of the file; the last
/// block may be shorter.
inline constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

/// What a file must look like: one CRC-32C per block, XXH3-128 of the whole, and its size.
struct FileChecksums {
  uint64_t size_bytes = 0;
  std::vector<uint32_t> block_crc32c;
  std::string xxh3_128;  ///< 32 hexadecimal digits
  bool operator==(const FileChecksums&) const = default;
};

/// Computes FileChecksums of a stream in one pass, in pieces of any size. Not thread-safe.
class ChecksumStream {
 public:
  ChecksumStream();
  ChecksumStream(ChecksumStream&&) noexcept;
  ~ChecksumStream();
  void update(std::span<const std::byte> bytes);
  /// Once, at the end.
  FileChecksums finish();

 private:
  struct Xxh3State;
  std::unique_ptr<Xxh3State> xxh3_;
  FileChecksums sums_;
  uint64_t block_filled_ = 0;
  uint32_t block_crc_ = 0;
};

}  // namespace mm::ckpt
