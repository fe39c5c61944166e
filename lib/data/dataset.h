#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "lib/data/dataset_manifest.h"
#include "lib/data/index.h"
#include "lib/data/sample_store.h"
#include "lib/data/shard_pool.h"

namespace mm::data {

/// A packed data set, opened for reading. Opening reads manifest and index only and verifies both:
/// hashes, that each shard file is there with the stated size, that every row lies in its shard and
/// its sizes are possible. Sample bytes are verified when read (CRC32C), or all at once by
/// `verify_dataset`. Thread-safe.
class Dataset final : public SampleStore {
 public:
  /// Throws DataError naming file, what was expected and found; IoError.
  static std::unique_ptr<Dataset> open(const std::filesystem::path& directory);

  uint64_t rows() const override { return index_.rows(); }
  std::vector<SampleSize> sizes() const override { return index_.sizes(); }
  std::string_view key(uint64_t row) const override { return index_.key(row); }
  PictureLayout pictures() const override;
  Result<Sample> read(uint64_t row) const override;

  const std::filesystem::path& directory() const { return directory_; }
  const DatasetManifest& manifest() const { return manifest_; }
  const DatasetIndex& index() const { return index_; }
  /// XXH3-128 of manifest.json: equal on all ranks, written into checkpoints.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  Dataset(std::filesystem::path directory, DatasetManifest manifest);
  void check_rows() const;
  Sample decode(uint64_t row, std::string_view payload) const;

  std::filesystem::path directory_;
  DatasetManifest manifest_;
  DatasetIndex index_;
  std::string fingerprint_;
  mutable ShardPool shards_;
};

}  // namespace mm::data
