#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lib/base/file.h"
#include "lib/data/record.h"
#include "lib/data/sample_builder.h"

namespace mm::data {

/// A run of consecutive records: what is redone after a kill, and what a thread works on at a time.
inline constexpr size_t kUnitRecords = 128;

/// Where a sample of a unit lies until it stands in its shard.
struct UnitSample {
  uint64_t row = 0;
  std::string key;
  SampleSize size;
  int32_t width = 0, height = 0;
  uint32_t unit = 0;
  uint64_t payload_offset = 0;  ///< in the unit's file
  uint32_t payload_bytes = 0;
  uint32_t payload_crc = 0;              ///< CRC32C
  uint32_t repeat = 0;                   ///< of the record
  uint32_t source = 0;                   ///< likewise
  std::vector<uint64_t> picture_hashes;  ///< as in BuiltSample
  PictureSides original = {};            ///< as in BuiltSample
  bool cut = false;                      ///< likewise
};

/// A unit's file without its payloads.
struct UnitTable {
  std::vector<UnitSample> samples;
  std::vector<LedgerEntry> bad;
  std::vector<LedgerEntry> warnings;  ///< of samples
  uint64_t content_hash = 0;  ///< XXH3 of the table, checksums included: equal for equal content
};

using UnitOutcome = std::variant<BuiltSample, LedgerEntry>;

/// Identity of a unit's input: keys, picture paths, texts. A unit file made from other records is
/// not reused.
uint64_t records_hash(std::span<const SourceItem> items);

/// Writes a unit's file: payloads as they come, the table at the end, so that memory holds one
/// sample. Not thread-safe; throws IoError.
class UnitWriter {
 public:
  /// Writes to `aside` until `finish`.
  explicit UnitWriter(std::filesystem::path aside);
  void add(const UnitOutcome& outcome);
  /// Table, fsync, rename to `path`, fsync of its directory; returns the table.
  UnitTable finish(const std::filesystem::path& path, uint64_t records_hash, uint32_t unit);

 private:
  std::filesystem::path aside_;
  File file_;
  uint64_t offset_ = 0;
  UnitTable table_;
};

/// How much of a unit's file is checked: the table alone, or every payload too (reads it all).
enum class UnitCheck { kTable, kAll };

/// The unit's table, if the file is whole and was made from these records; nothing if it is
/// missing, damaged or of others: then it is made again.
std::optional<UnitTable> read_unit(const std::filesystem::path& path, uint64_t records_hash,
                                   uint32_t unit, UnitCheck check);

}  // namespace mm::data
