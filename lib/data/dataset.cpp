#include "lib/data/dataset.h"

#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shard_paths(const fs::path& directory, const DatasetManifest& manifest) {
  std::vector<fs::path> paths;
  for (const ShardEntry& shard : manifest.shards) paths.push_back(directory / shard.file.file);
  return paths;
}

void check_shard_files(const fs::path& directory, const DatasetManifest& manifest) {
  for (const ShardEntry& shard : manifest.shards) {
    const auto path = directory / shard.file.file;
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) throw DataError("{}: shard is missing ({})", path.string(), error.message());
    if (bytes != shard.file.bytes) {
      throw DataError("{}: {} bytes, the manifest says {}; copy it again or pack again",
                      path.string(), bytes, shard.file.bytes);
    }
  }
}

}  // namespace

Dataset::Dataset(fs::path directory, DatasetManifest manifest)
    : directory_(std::move(directory)),
      manifest_(std::move(manifest)),
      index_(directory_ / manifest_.index.file),
      shards_(shard_paths(directory_, manifest_)),
      seen_(index_.rows()),
      seen_in_cache_(index_.rows()) {}

std::unique_ptr<Dataset> Dataset::open(const fs::path& directory) {
  std::unique_ptr<Dataset> set(new Dataset(directory, read_manifest(directory)));
  const auto path = (directory / set->manifest_.index.file).string();
  const FileEntry& entry = set->manifest_.index;
  const auto bytes = set->index_.bytes();
  if (bytes.size() != entry.bytes || xxh3_128_hex(bytes) != entry.xxh3_128) {
    throw DataError("{}: not the index that the manifest describes (size or hash differs)", path);
  }
  check_shard_files(directory, set->manifest_);
  set->check_rows();
  set->fingerprint_ = xxh3_128_hex(read_file(directory / "manifest.json"));
  return set;
}

void Dataset::check_rows() const {
  const std::string path = (directory_ / manifest_.index.file).string();
  if (index_.rows() != manifest_.counts.samples) {
    throw DataError("{}: {} rows, the manifest says {} samples", path, index_.rows(),
                    manifest_.counts.samples);
  }
  if (index_.rows() > UINT32_MAX)
    throw DataError("{}: {} rows, this version reads up to 2^32", path, index_.rows());
  const int64_t patches = manifest_.pictures.varied ? 0 : manifest_.pictures.patches;
  const std::set<BucketShape> shapes(manifest_.pictures.buckets.begin(),
                                     manifest_.pictures.buckets.end());
  const bool bucketed = !shapes.empty();
  for (uint64_t i = 0; i < index_.rows(); ++i) {
    const RowPlace place = index_.place(i);
    const SampleSize size = this->size(i);
    const bool placed = place.shard < manifest_.shards.size() && place.bytes >= kRecordHeadBytes &&
                        place.offset <= manifest_.shards[place.shard].file.bytes &&
                        place.bytes <= manifest_.shards[place.shard].file.bytes - place.offset;
    const bool possible =
        size.tokens >= 0 && size.images >= 0 && size.targets >= 0 &&
        (bucketed ? size.images == 1 && size.targets == 1 && shapes.contains(size.bucket)
                  : size.targets <= size.tokens && size.images * patches <= size.tokens);
    if (!placed || !possible)
      throw DataError("{}: row {} has an impossible place or size", path, i);
  }
}

PictureLayout Dataset::pictures() const {
  const PictureEntry& entry = manifest_.pictures;
  return {entry.side,    entry.side,
          entry.patches, manifest_.tokenizer.image_token_id,
          entry.varied,  !entry.buckets.empty()};
}

/// The index tells a bucket by the sides of the stored picture.
SampleSize Dataset::size(uint64_t row) const {
  SampleSize size = index_.size(row);
  if (manifest_.pictures.buckets.empty()) return size;
  const auto [width, height] = index_.sides(row);
  if (width <= UINT16_MAX && height <= UINT16_MAX && width > 0 && height > 0)
    size.bucket = {static_cast<uint16_t>(height), static_cast<uint16_t>(width)};
  return size;
}

std::vector<SampleSize> Dataset::sizes() const {
  if (manifest_.pictures.buckets.empty()) return index_.sizes();
  std::vector<SampleSize> all(index_.rows());
  for (uint64_t row = 0; row < all.size(); ++row) all[row] = size(row);
  return all;
}

void Dataset::use_cache(NodeCacheOptions options) {
  cache_ = std::make_unique<NodeCache>(directory_, manifest_, fingerprint_, std::move(options));
}

void Dataset::expect(uint64_t first_step,
                     const std::vector<std::vector<uint32_t>>& files_of_steps) const {
  if (cache_) cache_->expect(first_step, files_of_steps);
}

void Dataset::reached(uint64_t step) const {
  if (cache_) cache_->reached(step);
}

}  // namespace mm::data
