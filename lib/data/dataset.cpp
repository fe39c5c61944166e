#include "lib/data/dataset.h"

#include <algorithm>
#include <numeric>
#include <tuple>
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

/// Placeholders of picture `i`.
size_t tokens_of(const Sample& sample, size_t i, const PictureLayout& layout) {
  return static_cast<size_t>(layout.varied ? sample.grids[i].tokens : layout.patches);
}

/// Ids exist in the vocabulary, and placeholders stand where the pictures are and nowhere else.
void check_tokens(const Sample& sample, const PictureLayout& layout, int32_t vocab_size) {
  const SampleText& text = sample.text;
  size_t placeholders = 0, expected = 0;
  for (const int32_t token : text.tokens) {
    if (token < 0 || token >= vocab_size) {
      throw DataError("token id {} is outside the vocabulary of {}", token, vocab_size);
    }
    placeholders += token == layout.image_token_id;
  }
  size_t free_from = 0;
  for (size_t picture = 0; picture < text.image_begin.size(); ++picture) {
    const size_t begin = text.image_begin[picture], count = tokens_of(sample, picture, layout);
    bool whole = begin >= free_from && begin + count <= text.tokens.size();
    for (size_t i = begin; whole && i < begin + count; ++i) {
      whole = text.tokens[i] == layout.image_token_id;
    }
    if (!whole) throw DataError("picture at token {} is cut or is not all placeholders", begin);
    free_from = begin + count;
    expected += count;
  }
  if (placeholders != expected) {
    throw DataError("{} placeholders for {} pictures of {} patches in all", placeholders,
                    text.image_begin.size(), expected);
  }
}

/// One stored file; its pixels are as they are trained on, whatever its tags say.
void append_file(std::string_view file, const StoredPicture& picture,
                 std::vector<uint8_t>& pixels) {
  const auto decoded = image::decode(image::as_bytes(file), {.orient = image::Orient::kIgnore});
  if (!decoded) throw DataError("stored picture: {}", decoded.failure().message);
  const image::Image& image = decoded->image;
  if (image.width != picture.width || image.height != picture.height) {
    throw DataError("stored picture is {}x{}, its record says {}x{}", image.width, image.height,
                    picture.width, picture.height);
  }
  pixels.insert(pixels.end(), image.rgb.begin(), image.rgb.end());
}

/// Appends the pixels of one stored picture.
void append_pixels(const StoredPicture& picture, const PictureLayout& layout,
                   std::vector<uint8_t>& pixels) {
  if (picture.grid.has_value() != layout.varied) {
    throw DataError("picture {} a grid in a set of {} pictures", picture.grid ? "with" : "without",
                    layout.varied ? "varied" : "equal");
  }
  if (!layout.varied && (picture.width != layout.width || picture.height != layout.height)) {
    throw DataError("picture of {}x{}, the data set has {}x{}", picture.width, picture.height,
                    layout.width, layout.height);
  }
  if (picture.codec == PictureCodec::kLatent) {
    throw DataError("picture stored as a latent tensor; this version trains on pixels");
  }
  if (picture.codec == PictureCodec::kRaw) {
    // As bytes of the vector's own type, so that they are copied as a block.
    const auto* bytes = reinterpret_cast<const uint8_t*>(picture.bytes.data());
    pixels.insert(pixels.end(), bytes, bytes + picture.bytes.size());
    return;
  }
  for (const std::string_view file : split_tiles(picture.bytes, picture.tiles()))
    append_file(file, picture, pixels);
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
  const int64_t patches = manifest_.pictures.varied ? 0 : manifest_.pictures.patches;
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
  return {entry.side, entry.side, entry.patches, manifest_.tokenizer.image_token_id, entry.varied};
}

Sample Dataset::decode(uint64_t row, std::string_view payload) const {
  const SampleSize size = index_.size(row);
  DecodedSample decoded =
      decode_sample(std::as_bytes(std::span(payload)), static_cast<uint32_t>(size.tokens));
  Sample sample{std::move(decoded.text), {}};
  for (const StoredPicture& picture : decoded.pictures)
    if (picture.grid) sample.grids.push_back(*picture.grid);
  const PictureLayout layout = pictures();
  if (layout.varied && sample.grids.size() != decoded.pictures.size())
    throw DataError("a picture without a grid in a set of varied pictures");
  const SampleSize stored = size_of(sample.text, sample.grids);
  if (stored.images != size.images || stored.targets != size.targets) {
    throw DataError("{} images and {} targets stored, the index says {} and {}", stored.images,
                    stored.targets, size.images, size.targets);
  }
  check_tokens(sample, layout, manifest_.tokenizer.vocab_size);
  for (const StoredPicture& picture : decoded.pictures)
    append_pixels(picture, layout, sample.pixels);
  return sample;
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

/// Payloads of rows that follow one another in one shard.
std::vector<Result<std::string>> Dataset::read_run(std::span<const uint32_t> rows) const {
  const uint32_t shard = index_.place(rows.front()).shard;
  std::vector<RecordPlace> places;
  for (const uint32_t row : rows) {
    const RowPlace place = index_.place(row);
    places.push_back({place.offset, place.bytes});
  }
  if (const auto copy = cache_ ? cache_->find(shard) : nullptr) {
    try {
      auto payloads = copy->read_run(places, rows);
      if (std::ranges::all_of(payloads, [](const auto& payload) { return payload.ok(); }))
        return payloads;
    } catch (const Error&) {
      // Cut or unreadable; only the store's bytes decide whether a sample is bad.
    }
    cache_->damaged(shard);
  }
  return shards_.get(shard)->read_run(places, rows);
}

Result<Sample> Dataset::to_sample(uint64_t row, const Result<std::string>& payload) const {
  const auto where = [&] { return fmt::format("sample {} ({})", row, index_.key(row)); };
  if (!payload) return Failure{payload.failure().kind, where() + ": " + payload.failure().message};
  try {
    return decode(row, *payload);
  } catch (const DataError& error) {
    return corrupt(row, error);
  }
}

Failure Dataset::corrupt(uint64_t row, const DataError& error) const {
  return {"corrupt",
          fmt::format("sample {} ({}): {}: {}", row, index_.key(row),
                      manifest_.shards[index_.place(row).shard].file.file, error.what())};
}

Result<Sample> Dataset::read(uint64_t row) const {
  const auto only = static_cast<uint32_t>(row);
  return std::move(read_many({&only, 1}).front());
}

std::vector<Result<Sample>> Dataset::read_many(std::span<const uint32_t> rows) const {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) {
    const RowPlace place = index_.place(rows[i]);
    return std::tuple(place.shard, place.offset, i);
  });
  std::vector<std::optional<Result<Sample>>> samples(rows.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::vector<uint32_t> run;
    uint64_t next = index_.place(rows[order[begin]]).offset;
    const uint32_t shard = index_.place(rows[order[begin]]).shard;
    for (; end < order.size(); ++end) {
      const RowPlace place = index_.place(rows[order[end]]);
      if (place.shard != shard || place.offset != next) break;
      run.push_back(rows[order[end]]);
      next += place.bytes;
    }
    read_into(run, std::span(order).subspan(begin, end - begin), samples);
  }
  std::vector<Result<Sample>> result;
  for (auto& sample : samples) result.push_back(std::move(*sample));
  return result;
}

/// Samples of one run to their places in `samples`.
void Dataset::read_into(std::span<const uint32_t> run, std::span<const size_t> places,
                        std::vector<std::optional<Result<Sample>>>& samples) const {
  try {
    const auto payloads = read_run(run);
    for (size_t i = 0; i < run.size(); ++i) samples[places[i]] = to_sample(run[i], payloads[i]);
  } catch (const DataError& error) {  // the shard as a whole
    for (size_t i = 0; i < run.size(); ++i) samples[places[i]] = corrupt(run[i], error);
  }
}

}  // namespace mm::data
