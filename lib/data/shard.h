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
#include "lib/data/record_sum.h"

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

/// Reads records of one shard, which it maps; all calls are thread-safe. Pages of the map count as
/// resident memory of the process, though the kernel takes them back when it needs them.
class ShardReader {
 public:
  /// Throws IoError if it cannot be opened or mapped, DataError if it is no shard of this version.
  explicit ShardReader(const std::filesystem::path& path);
  /// Brings the file's bytes there into memory, in one read. Then they can be looked at without a
  /// signal, unless the file is cut or, on a network file system, its pages are dropped and the
  /// server is gone: there (`is_remote`) it is called before every look. Throws DataError
  /// ("truncated"), IoError. 10 us for 340 KB that are in memory.
  void fetch(RecordPlace range) const;
  /// The record at `place`, its checksum not computed (RecordSum). Failure "truncated", "length" or
  /// "id", as `view`.
  Result<OpenRecord> open(RecordPlace place, uint64_t id) const;
  /// What `view` says of a record whose checksum differs.
  Failure mismatch(RecordPlace place) const;
  /// Payload of the record at `place`, in the map: valid as long as the reader. The bytes were
  /// fetched. Failure "truncated", "length", "checksum" or "id" with path and offset; never trusts
  /// a number it has not checked. Without `verify` the checksum is not computed.
  Result<std::string_view> view(RecordPlace place, uint64_t id, bool verify = true) const;
  /// Both, and a copy.
  Result<std::string> read(RecordPlace place, uint64_t id) const;
  bool is_inside(RecordPlace place) const;
  bool is_remote() const { return remote_; }
  uint64_t size_bytes() const { return map_.bytes().size(); }
  uint64_t plan_hash() const { return plan_hash_; }

 private:
  Failure failure(const char* kind, RecordPlace place, const std::string& detail) const;

  File file_;
  MappedFile map_;
  bool remote_ = false;
  uint64_t plan_hash_ = 0;
};

}  // namespace mm::data
