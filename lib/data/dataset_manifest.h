#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/bucket_shape.h"

namespace mm::data {

/// A file of the data set: name inside the directory, size and XXH3-128 of its content.
struct FileEntry {
  std::string file;
  uint64_t bytes = 0;
  std::string xxh3_128;
  bool operator==(const FileEntry&) const = default;
};

struct ShardEntry {
  FileEntry file;
  uint64_t samples = 0;
};

/// How texts became ids.
struct TokenizerEntry {
  std::string kind;  ///< "sentencepiece", "tokenizer.json", "labels" (class names), ...
  FileEntry file;
  int32_t vocab_size = 0;  ///< the image token included
  int32_t image_token_id = -1;
  int32_t bos_id = -1, eos_id = -1, pad_id = -1;  ///< -1: none
  std::vector<std::string> classes = {};          ///< of kind "labels": the names, by id; else none
};

/// How pictures became pixels. `side` 0: a set of texts.
struct PictureEntry {
  std::string geometry, filter;      ///< words of lib/image
  std::string storage;               ///< "raw", "jpeg", "webp", "webp-lossless", "source"
  int32_t side = 0, patch = 0;       ///< pixels
  int32_t patches = 0;               ///< placeholders a picture: (side / patch)^2
  bool varied = false;               ///< pictures of several tiles or sizes: each has its own grid
  std::vector<BucketShape> buckets;  ///< of a bucketed set, where each picture has one of them
};

struct DatasetCounts {
  uint64_t samples = 0, tokens = 0, images = 0, targets = 0;
  uint64_t longest = 0;  ///< tokens of the longest sample
  uint64_t bad = 0;      ///< ledger entries that count against the limit
  uint64_t skipped = 0;  ///< pictures without a caption, records left out by --ids or --exclude
};

/// Proof that no row of the source was lost: samples and ledger hold just these rows (RowSet).
struct SourceRows {
  uint64_t count = 0;  ///< rows that were not left out by --ids or --exclude
  std::string hash;    ///< empty in sets that were packed before there was a proof
};

/// manifest.json of a packed data set (docs/formats.md). Everything else in the directory is named
/// here with size and hash.
struct DatasetManifest {
  TokenizerEntry tokenizer;
  PictureEntry pictures;
  std::string chat_template;
  int32_t max_length = 0;
  DatasetCounts counts;
  SourceRows source_rows;
  FileEntry index, ledger;
  std::vector<ShardEntry> shards;
  Json bucketing;   ///< a Bucketing; null but in bucketed sets
  Json duplicates;  ///< a DuplicateReport; null in sets made before there was one
  Json options;     ///< what the packer was asked for: equal options, equal bytes
};

/// Names of all files of the data set, manifest.json included.
std::set<std::string> files_of(const DatasetManifest& manifest);

/// Version 1: pictures of one size, raw or JPEG; 2: also varied ones and WebP; 3: bucketed ones. A
/// set is written as the oldest that says it all; all are read.
inline constexpr int kDatasetVersion = 3;

Json to_json(const DatasetManifest& manifest);
/// Throws DataError naming the key that is missing, of another type or out of range, or the version
/// it cannot read.
DatasetManifest manifest_from_json(const Json& json, std::string_view origin);

/// DIR/manifest.json.
DatasetManifest read_manifest(const std::filesystem::path& directory);

/// Size and hash of a file as it is now, read in blocks. Throws IoError.
FileEntry describe_file(const std::filesystem::path& directory, const std::string& name);

}  // namespace mm::data
