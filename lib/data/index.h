#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/data/column_file.h"
#include "lib/data/epoch_plan.h"

namespace mm::data {

/// What the index says of one sample. The row number is the sample's id.
struct IndexRow {
  uint64_t source_row = 0;  ///< position in the source, from 0
  uint64_t offset = 0;      ///< of the record in its shard
  uint32_t shard = 0;
  uint32_t bytes = 0;  ///< of the record, head included
  SampleSize size;
  int32_t width = 0, height = 0;  ///< of the stored pictures; 0 without
  std::string key;                ///< recorded name, UTF-8
  uint32_t source = 0;            ///< part of the mixture, as in source_names()
};

/// Where the record of a row lies.
struct RowPlace {
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

/// Writes the index as a column file (docs/formats.md). Atomic. O(rows) memory.
void write_index(const std::filesystem::path& path, std::span<const IndexRow> rows);

/// The index, mapped: opening costs one pass for the checksums, rows are read in place. Immutable,
/// thread-safe.
class DatasetIndex {
 public:
  /// Throws IoError, or DataError naming the damaged part; every size is checked against the file
  /// before use.
  explicit DatasetIndex(const std::filesystem::path& path);

  uint64_t rows() const { return rows_; }
  /// `row` < rows(), else InternalError.
  IndexRow row(uint64_t row) const;
  RowPlace place(uint64_t row) const { return {shard_[row], offset_[row], bytes_[row]}; }
  SampleSize size(uint64_t row) const { return {tokens_[row], images_[row], targets_[row]}; }
  /// Width and height of the stored pictures; 0 without.
  std::pair<int32_t, int32_t> sides(uint64_t row) const { return {width_[row], height_[row]}; }
  /// All sizes in row order, as plan_epoch takes them; without buckets, which the manifest tells.
  std::vector<SampleSize> sizes() const;
  std::string_view key(uint64_t row) const;
  /// Part of the mixture that the row came from; 0 in sets that were packed before it was kept.
  uint32_t source(uint64_t row) const { return source_.empty() ? 0 : source_[row]; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  void check_keys(const std::filesystem::path& path) const;
  ColumnFile file_;
  uint64_t rows_ = 0;
  std::span<const uint64_t> source_row_, offset_, key_end_;
  std::span<const uint32_t> shard_, bytes_, source_;
  std::span<const int32_t> tokens_, images_, targets_, width_, height_;
  std::string_view keys_;
};

}  // namespace mm::data
