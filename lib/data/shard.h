#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/result.h"

namespace mm::data {

/// A shard file: a 32-byte header, then records back to back. A record is a 16-byte head (payload
/// bytes u32, CRC32C u32 over id and payload, id u64) and the payload (an encoded sample), read in
/// one go at the offset that the index states. Offsets are 64-bit throughout.
inline constexpr std::string_view kShardMagic = "MMSHARD\n";
inline constexpr uint32_t kShardVersion = 1;
inline constexpr uint64_t kShardHeaderBytes = 32;
inline constexpr uint64_t kRecordHeadBytes = 16;

/// Where a record lies in its shard.
struct RecordPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;  ///< head included
};

/// Writes one shard aside (default: `path`.tmp) and renames it in `finish`: the file is there whole
/// or not at all. `plan_hash` is what a restarted packer recognises its own work by. Not
/// thread-safe. Throws IoError.
class ShardWriter {
 public:
  ShardWriter(std::filesystem::path path, uint64_t plan_hash, std::filesystem::path aside = {});
  RecordPlace append(uint64_t id, std::string_view payload);
  /// Flushes, fsyncs, renames.
  void finish();
  uint64_t size_bytes() const { return offset_; }
  /// XXH3-128 of what was given to the file, from memory: a disk that changes it is found out.
  /// After `finish`.
  std::string hash() const { return hash_.hex(); }

 private:
  void flush();
  std::filesystem::path path_, aside_;
  Xxh3Stream hash_;
  File file_;
  std::string buffer_;
  uint64_t offset_ = 0;
};

/// A record as ShardWriter frames it.
std::string frame_record(uint64_t id, std::string_view payload);

/// Reads records of one shard; `read` may be called from many threads.
class ShardReader {
 public:
  /// Throws IoError if it cannot be opened, DataError if it is no shard of this version.
  explicit ShardReader(const std::filesystem::path& path);
  /// Payload of the record at `place`. Failure "truncated", "length", "checksum" or "id" with path
  /// and offset; never trusts a number it has not checked.
  Result<std::string> read(RecordPlace place, uint64_t id) const;
  /// Payloads of records that follow one another without a gap, in one read of the file.
  std::vector<Result<std::string>> read_run(std::span<const RecordPlace> places,
                                            std::span<const uint32_t> ids) const;
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t plan_hash() const { return plan_hash_; }

 private:
  bool is_inside(RecordPlace place) const;
  Failure outside(RecordPlace place) const;
  Failure failure(const char* kind, RecordPlace place, const std::string& detail) const;
  Result<std::string> check(std::span<const std::byte> head, std::string payload, RecordPlace place,
                            uint64_t id) const;

  File file_;
  uint64_t size_bytes_ = 0;
  uint64_t plan_hash_ = 0;
};

}  // namespace mm::data
