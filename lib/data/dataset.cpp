#include "lib/data/dataset.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/image/decode.h"

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

/// Ids exist in the vocabulary, and placeholders stand where the pictures are and nowhere else.
void check_tokens(const SampleText& text, const PictureLayout& layout, int32_t vocab_size) {
  size_t placeholders = 0;
  for (const int32_t token : text.tokens) {
    if (token < 0 || token >= vocab_size) {
      throw DataError("token id {} is outside the vocabulary of {}", token, vocab_size);
    }
    placeholders += token == layout.image_token_id;
  }
  const auto patches = static_cast<size_t>(layout.patches);
  size_t free_from = 0;
  for (const uint32_t begin : text.image_begin) {
    bool whole = begin >= free_from && begin + patches <= text.tokens.size();
    for (size_t i = begin; whole && i < begin + patches; ++i) {
      whole = text.tokens[i] == layout.image_token_id;
    }
    if (!whole) throw DataError("picture at token {} is cut or is not all placeholders", begin);
    free_from = begin + patches;
  }
  if (placeholders != text.image_begin.size() * patches) {
    throw DataError("{} placeholders for {} pictures of {} patches", placeholders,
                    text.image_begin.size(), patches);
  }
}

/// Appends the pixels of one stored picture.
void append_pixels(const StoredPicture& picture, const PictureLayout& layout,
                   std::vector<uint8_t>& pixels) {
  if (picture.width != layout.width || picture.height != layout.height) {
    throw DataError("picture of {}x{}, the data set has {}x{}", picture.width, picture.height,
                    layout.width, layout.height);
  }
  if (picture.codec == PictureCodec::kRaw) {
    pixels.insert(pixels.end(), picture.bytes.begin(), picture.bytes.end());
    return;
  }
  const auto decoded = image::decode(image::as_bytes(picture.bytes));
  if (!decoded) throw DataError("stored JPEG: {}", decoded.failure().message);
  const image::Image& image = decoded->image;
  if (image.width != layout.width || image.height != layout.height) {
    throw DataError("stored JPEG is {}x{}, its record says {}x{}", image.width, image.height,
                    layout.width, layout.height);
  }
  pixels.insert(pixels.end(), image.rgb.begin(), image.rgb.end());
}

}  // namespace

Dataset::Dataset(fs::path directory, DatasetManifest manifest)
    : directory_(std::move(directory)),
      manifest_(std::move(manifest)),
      index_(directory_ / manifest_.index.file),
      shards_(shard_paths(directory_, manifest_)) {}

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
  const int64_t patches = manifest_.pictures.patches;
  for (uint64_t i = 0; i < index_.rows(); ++i) {
    const RowPlace place = index_.place(i);
    const SampleSize size = index_.size(i);
    const bool placed = place.shard < manifest_.shards.size() && place.bytes >= kRecordHeadBytes &&
                        place.offset <= manifest_.shards[place.shard].file.bytes &&
                        place.bytes <= manifest_.shards[place.shard].file.bytes - place.offset;
    const bool possible = size.tokens >= 0 && size.images >= 0 && size.targets >= 0 &&
                          size.targets <= size.tokens && size.images * patches <= size.tokens;
    if (!placed || !possible)
      throw DataError("{}: row {} has an impossible place or size", path, i);
  }
}

PictureLayout Dataset::pictures() const {
  const PictureEntry& entry = manifest_.pictures;
  return {entry.side, entry.side, entry.patches, manifest_.tokenizer.image_token_id};
}

Sample Dataset::decode(uint64_t row, std::string_view payload) const {
  const SampleSize size = index_.size(row);
  DecodedSample decoded =
      decode_sample(std::as_bytes(std::span(payload)), static_cast<uint32_t>(size.tokens));
  const SampleSize stored = size_of(decoded.text);
  if (stored.images != size.images || stored.targets != size.targets) {
    throw DataError("{} images and {} targets stored, the index says {} and {}", stored.images,
                    stored.targets, size.images, size.targets);
  }
  const PictureLayout layout = pictures();
  check_tokens(decoded.text, layout, manifest_.tokenizer.vocab_size);
  Sample sample{std::move(decoded.text), {}};
  for (const StoredPicture& picture : decoded.pictures)
    append_pixels(picture, layout, sample.pixels);
  return sample;
}

Result<Sample> Dataset::read(uint64_t row) const {
  const RowPlace place = index_.place(row);
  const auto where = [&] { return fmt::format("sample {} ({})", row, index_.key(row)); };
  try {
    const auto payload = shards_.get(place.shard)->read({place.offset, place.bytes}, row);
    if (!payload)
      return Failure{payload.failure().kind, where() + ": " + payload.failure().message};
    return decode(row, *payload);
  } catch (const DataError& error) {
    return Failure{"corrupt", fmt::format("{}: {}: {}", where(),
                                          manifest_.shards[place.shard].file.file, error.what())};
  }
}

}  // namespace mm::data
