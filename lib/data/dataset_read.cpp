// Reading samples of a data set: from the mapped shards straight into a batch.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/data/stored_pixels.h"

namespace mm::data {
namespace {

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

}  // namespace

/// One row's bytes in a mapped shard that this keeps open, or why there are none.
struct Dataset::Viewed {
  std::shared_ptr<const ShardReader> shard;
  Result<OpenRecord> record = OpenRecord();
  RowMarks* seen = nullptr;  ///< where it is noted that the record was sound
  bool unchecked = false;    ///< the checksum is compared while pixels are copied
};

/// What a sample is unpacked with, and where its pixels go.
struct Dataset::Target {
  TextUnpacker& unpacker;
  PixelVector& pixels;
};

/// A sample without pixels, and its pictures as they are stored.
struct Dataset::Parsed {
  Sample sample;
  std::vector<StoredPicture> pictures;
};

Failure Dataset::named(uint64_t row, const Failure& failure) const {
  return {failure.kind, fmt::format("sample {} ({}): {}", row, index_.key(row), failure.message)};
}

Failure Dataset::corrupt(uint64_t row, const DataError& error) const {
  return {"corrupt",
          fmt::format("sample {} ({}): {}: {}", row, index_.key(row),
                      manifest_.shards[index_.place(row).shard].file.file, error.what())};
}

Dataset::Parsed Dataset::parse(uint64_t row, std::string_view payload,
                               TextUnpacker& unpacker) const {
  const SampleSize size = index_.size(row);
  DecodedSample decoded = decode_sample(std::as_bytes(std::span(payload)),
                                        static_cast<uint32_t>(size.tokens), unpacker);
  Parsed parsed{{std::move(decoded.text), {}}, std::move(decoded.pictures)};
  Sample& sample = parsed.sample;
  for (const StoredPicture& picture : parsed.pictures)
    if (picture.grid) sample.grids.push_back(*picture.grid);
  const PictureLayout layout = pictures();
  if (layout.varied && sample.grids.size() != parsed.pictures.size())
    throw DataError("a picture without a grid in a set of varied pictures");
  SampleSize stored = size_of(sample.text, sample.grids);
  if (layout.bucketed) stored.targets = stored.images;
  if (stored.images != size.images || stored.targets != size.targets) {
    throw DataError("{} images and {} targets stored, the index says {} and {}", stored.images,
                    stored.targets, size.images, size.targets);
  }
  check_tokens(sample, layout, manifest_.tokenizer.vocab_size);
  return parsed;
}

Sample Dataset::decode(uint64_t row, std::string_view payload, const Target& to,
                       RecordSum* sum) const {
  Parsed parsed = parse(row, payload, to.unpacker);
  const PictureLayout layout = pictures();
  for (const StoredPicture& picture : parsed.pictures)
    append_pixels(picture, layout, to.pixels, sum);
  return std::move(parsed.sample);
}

/// The sample, its pixels at the end of `pixels`; a failure leaves those as they were.
Result<Sample> Dataset::sample_of(uint64_t row, const Viewed& viewed, const Target& to) const {
  if (!viewed.record) return named(row, viewed.record.failure());
  const size_t before = to.pixels.size();
  try {
    RecordSum sum(*viewed.record);
    Sample sample = decode(row, viewed.record->payload, to, viewed.unchecked ? &sum : nullptr);
    if (!viewed.unchecked || sum.agrees()) {
      viewed.seen->set(row);
      return sample;
    }
    to.pixels.resize(before);
  } catch (const DataError& error) {
    to.pixels.resize(before);
    if (!viewed.unchecked || RecordSum(*viewed.record).agrees()) return corrupt(row, error);
  }
  const RowPlace place = index_.place(row);
  return named(row, viewed.shard->mismatch({place.offset, place.bytes}));
}

/// Records of rows that follow one another in a shard. Throws as `fetch` does.
std::vector<Dataset::Viewed> Dataset::look(const std::shared_ptr<const ShardReader>& reader,
                                           std::span<const uint32_t> run, RowMarks& seen) const {
  const ShardReader& shard = *reader;
  const RowPlace first = index_.place(run.front()), last = index_.place(run.back());
  const RecordPlace all{first.offset, last.offset + last.bytes - first.offset};
  const bool known = std::ranges::all_of(run, [&](uint32_t row) { return seen.test(row); });
  if ((!known || shard.is_remote()) && shard.is_inside(all)) shard.fetch(all);
  // Raw pixels are compared with their checksum while they are copied; what a decoder gets must be
  // sound before.
  const bool copied = manifest_.pictures.storage == "raw";
  std::vector<Viewed> views;
  views.reserve(run.size());
  for (const uint32_t row : run) {
    const RowPlace place = index_.place(row);
    const RecordPlace record{place.offset, place.bytes};
    const bool verify = verify_ == VerifyReads::kEvery || !seen.test(row);
    views.push_back({reader, shard.open(record, row), &seen, verify && copied});
    Viewed& view = views.back();
    if (verify && !copied && view.record && !RecordSum(*view.record).agrees())
      view.record = shard.mismatch(record);
  }
  return views;
}

void Dataset::view_run(std::span<const uint32_t> run, std::span<const size_t> places,
                       std::vector<Viewed>& viewed, bool cached) const {
  const auto give = [&](const std::shared_ptr<const ShardReader>& shard, RowMarks& seen) {
    auto views = look(shard, run, seen);
    for (size_t i = 0; i < run.size(); ++i) viewed[places[i]] = std::move(views[i]);
  };
  const uint32_t shard = index_.place(run.front()).shard;
  if (const auto copy = cached && cache_ ? cache_->find(shard) : nullptr) {
    try {
      give(copy, seen_in_cache_);
      if (std::ranges::all_of(places, [&](size_t i) { return viewed[i].record.ok(); })) return;
    } catch (const Error&) {
      // Cut or unreadable; only the store's bytes decide whether a sample is bad.
    }
    cache_->damaged(shard);
  }
  try {
    give(shards_.get(shard), seen_);
  } catch (const DataError& error) {  // the shard as a whole
    for (size_t i = 0; i < run.size(); ++i) {
      const Failure failure{"corrupt",
                            fmt::format("{}: {}", manifest_.shards[shard].file.file, error.what())};
      viewed[places[i]] = {.record = failure};
    }
  }
}

/// All rows in their order; rows that lie side by side are fetched together.
std::vector<Dataset::Viewed> Dataset::view_pack(std::span<const uint32_t> rows) const {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) {
    const RowPlace place = index_.place(rows[i]);
    return std::tuple(place.shard, place.offset, i);
  });
  std::vector<Viewed> viewed(rows.size());
  std::vector<uint32_t> run;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    run.clear();
    const RowPlace first = index_.place(rows[order[begin]]);
    uint64_t next = first.offset;
    for (; end < order.size(); ++end) {
      const RowPlace place = index_.place(rows[order[end]]);
      if (place.shard != first.shard || place.offset != next) break;
      run.push_back(rows[order[end]]);
      next += place.bytes;
    }
    view_run(run, std::span(order).subspan(begin, end - begin), viewed, true);
  }
  return viewed;
}

std::vector<Result<Sample>> Dataset::read_pack(std::span<const uint32_t> rows,
                                               PixelVector& pixels) const {
  std::vector<Viewed> viewed = view_pack(rows);
  UnpackerPool::Loan unpacker = unpackers_.lend();
  std::vector<Result<Sample>> samples;
  samples.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    samples.push_back(sample_of(rows[i], viewed[i], {*unpacker, pixels}));
    if (samples.back().ok() || viewed[i].seen != &seen_in_cache_) continue;
    // Only the store's bytes decide whether a sample is bad, and whether the copy is.
    const size_t only = 0;
    std::vector<Viewed> stored(1);
    view_run(rows.subspan(i, 1), {&only, 1}, stored, false);
    samples.back() = sample_of(rows[i], stored.front(), {*unpacker, pixels});
    if (samples.back().ok()) cache_->damaged(index_.place(rows[i]).shard);
  }
  return samples;
}

Result<Sample> Dataset::text_of(uint64_t row, TextUnpacker& unpacker) const {
  const RowPlace place = index_.place(row);
  // Behind a record's head and a sample's stand at most three counts and, per token, its id, a span
  // and a picture's place; then the head of a picture.
  const auto front = uint64_t{256} + 16 * static_cast<uint64_t>(index_.size(row).tokens);
  try {
    const std::shared_ptr<const ShardReader> shard = shards_.get(place.shard);
    const RecordPlace head{place.offset, std::min<uint64_t>(place.bytes, front)};
    if (shard->is_inside(head)) shard->fetch(head);
    const Result<OpenRecord> record = shard->open({place.offset, place.bytes}, row);
    if (!record) return named(row, record.failure());
    return parse(row, record->payload, unpacker).sample;
  } catch (const DataError& error) {
    return corrupt(row, error);
  }
}

std::vector<Result<Sample>> Dataset::read_texts(std::span<const uint32_t> rows) const {
  UnpackerPool::Loan unpacker = unpackers_.lend();
  std::vector<Result<Sample>> samples;
  samples.reserve(rows.size());
  for (const uint32_t row : rows) samples.push_back(text_of(row, *unpacker));
  return samples;
}

Result<Sample> Dataset::read(uint64_t row) const {
  const auto only = static_cast<uint32_t>(row);
  PixelVector pixels;
  Result<Sample> sample = std::move(read_pack({&only, 1}, pixels).front());
  if (sample) sample->pixels.assign(pixels.begin(), pixels.end());
  return sample;
}

}  // namespace mm::data
