#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/data/dataset_manifest.h"
#include "lib/data/index.h"
#include "lib/data/node_cache.h"
#include "lib/data/row_marks.h"
#include "lib/data/sample_store.h"
#include "lib/data/shard_pool.h"
#include "lib/data/unpacker_pool.h"

namespace mm::data {

/// When the checksum of a stored sample is computed: at every read, or at the first read of this
/// process from each copy. Everything else (sizes, tokens, whole pictures) is checked at every
/// read. That of raw pictures is computed while they are copied, and costs a tenth of the copy.
enum class VerifyReads { kEvery, kFirst };

/// A packed data set, opened for reading. Opening reads manifest and index only and verifies both:
/// hashes, that each shard file is there with the stated size, that every row lies in its shard and
/// its sizes are possible. Sample bytes are verified when read (CRC32C), or all at once by
/// `verify_dataset`. Shards are mapped: pixels go from the page cache to their batch in one copy,
/// or are decoded into it. Thread-safe.
class Dataset final : public SampleStore {
 public:
  /// Throws DataError naming file, what was expected and found; IoError.
  static std::unique_ptr<Dataset> open(const std::filesystem::path& directory);

  uint64_t rows() const override { return index_.rows(); }
  std::vector<SampleSize> sizes() const override;
  std::string_view key(uint64_t row) const override { return index_.key(row); }
  PictureLayout pictures() const override;
  std::vector<BucketShape> buckets() const override { return manifest_.pictures.buckets; }
  Result<Sample> read(uint64_t row) const override;
  std::vector<Result<Sample>> read_pack(std::span<const uint32_t> rows,
                                        PixelVector& pixels) const override;
  /// Reads the front of each record, from the shards themselves, not from copies on this node.
  std::vector<Result<Sample>> read_texts(std::span<const uint32_t> rows) const override;
  uint32_t file_of(uint64_t row) const override { return index_.place(row).shard; }
  void expect(uint64_t first_step,
              const std::vector<std::vector<uint32_t>>& files_of_steps) const override;
  void reached(uint64_t step) const override;

  /// Reads through copies on this node from here on. Before any other thread uses the set. Throws
  /// as NodeCache does.
  void use_cache(NodeCacheOptions options);
  /// Before any other thread uses the set. Default: every.
  void verify_reads(VerifyReads when) { verify_ = when; }
  /// Null without one.
  const NodeCache* cache() const { return cache_.get(); }

  const std::filesystem::path& directory() const { return directory_; }
  const DatasetManifest& manifest() const { return manifest_; }
  const DatasetIndex& index() const { return index_; }
  /// XXH3-128 of manifest.json: equal on all ranks, written into checkpoints.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  Dataset(std::filesystem::path directory, DatasetManifest manifest);
  void check_rows() const;
  SampleSize size(uint64_t row) const;
  struct Viewed;
  std::vector<Viewed> view_pack(std::span<const uint32_t> rows) const;
  void view_run(std::span<const uint32_t> run, std::span<const size_t> places,
                std::vector<Viewed>& viewed, bool cached) const;
  std::vector<Viewed> look(const std::shared_ptr<const ShardReader>& reader,
                           std::span<const uint32_t> run, RowMarks& seen) const;
  struct Target;
  Result<Sample> sample_of(uint64_t row, const Viewed& viewed, const Target& to) const;
  Sample decode(uint64_t row, std::string_view payload, const Target& to, RecordSum* sum) const;
  struct Parsed;
  Parsed parse(uint64_t row, std::string_view payload, TextUnpacker& unpacker) const;
  Result<Sample> text_of(uint64_t row, TextUnpacker& unpacker) const;
  Failure named(uint64_t row, const Failure& failure) const;
  Failure corrupt(uint64_t row, const DataError& error) const;

  std::filesystem::path directory_;
  DatasetManifest manifest_;
  DatasetIndex index_;
  std::string fingerprint_;
  mutable ShardPool shards_;
  std::unique_ptr<NodeCache> cache_;
  VerifyReads verify_ = VerifyReads::kEvery;
  mutable UnpackerPool unpackers_;
  mutable RowMarks seen_, seen_in_cache_;  ///< rows that were fetched and verified once
};

}  // namespace mm::data
