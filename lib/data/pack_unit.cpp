#include "lib/data/pack_unit.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

// Payloads back to back, the table, then a tail: bytes of the table, hash of the records, hash of
// table and both numbers before it (u64 each), magic.
constexpr std::string_view kMagic = "MMUNIT5\n";
constexpr size_t kNumbersBytes = 2 * sizeof(uint64_t);
constexpr size_t kTailBytes = kNumbersBytes + sizeof(uint64_t) + kMagic.size();

void put_string(ByteWriter& out, std::string_view text) {
  out.put(static_cast<uint32_t>(text.size()));
  out.put_text(text);
}

std::string get_string(ByteReader& in) {
  const auto bytes = in.take(in.get<uint32_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put_entry(ByteWriter& out, const LedgerEntry& entry) {
  out.put(entry.row);
  out.put(static_cast<uint8_t>(entry.skipped));
  out.put(static_cast<uint8_t>(entry.warned));
  for (const auto* text : {&entry.key, &entry.path, &entry.kind, &entry.message})
    put_string(out, *text);
}

LedgerEntry get_entry(ByteReader& in) {
  LedgerEntry entry;
  entry.row = in.get<uint64_t>();
  entry.skipped = in.get<uint8_t>() != 0;
  entry.warned = in.get<uint8_t>() != 0;
  for (auto* text : {&entry.key, &entry.path, &entry.kind, &entry.message}) *text = get_string(in);
  return entry;
}

void put_sample(ByteWriter& out, const UnitSample& sample) {
  out.put(sample.row);
  put_string(out, sample.key);
  out.put(sample.size);
  out.put(sample.width);
  out.put(sample.height);
  out.put(sample.original);
  out.put(static_cast<uint8_t>(sample.cut));
  out.put(sample.payload_offset);
  out.put(sample.payload_bytes);
  out.put(sample.payload_crc);
  out.put(sample.repeat);
  out.put(sample.source);
  out.put(static_cast<uint32_t>(sample.picture_hashes.size()));
  for (const uint64_t hash : sample.picture_hashes) out.put(hash);
}

UnitSample get_sample(ByteReader& in, uint32_t unit) {
  UnitSample sample;
  sample.unit = unit;
  sample.row = in.get<uint64_t>();
  sample.key = get_string(in);
  sample.size = in.get<SampleSize>();
  sample.width = in.get<int32_t>();
  sample.height = in.get<int32_t>();
  sample.original = in.get<PictureSides>();
  sample.cut = in.get<uint8_t>() != 0;
  sample.payload_offset = in.get<uint64_t>();
  sample.payload_bytes = in.get<uint32_t>();
  sample.payload_crc = in.get<uint32_t>();
  sample.repeat = in.get<uint32_t>();
  sample.source = in.get<uint32_t>();
  for (auto left = in.get<uint32_t>(); left > 0; --left)
    sample.picture_hashes.push_back(in.get<uint64_t>());
  return sample;
}

std::string encode_table(const UnitTable& table) {
  ByteWriter out;
  out.put(static_cast<uint32_t>(table.samples.size()));
  for (const UnitSample& sample : table.samples) put_sample(out, sample);
  for (const auto* entries : {&table.bad, &table.warnings}) {
    out.put(static_cast<uint32_t>(entries->size()));
    for (const LedgerEntry& entry : *entries) put_entry(out, entry);
  }
  return out.take();
}

/// The hash is right, so what does not parse is our bug or another version's file.
UnitTable parse_table(std::span<const std::byte> bytes, uint32_t unit) {
  ByteReader in(bytes, "table of a unit");
  UnitTable table;
  for (auto left = in.get<uint32_t>(); left > 0; --left)
    table.samples.push_back(get_sample(in, unit));
  for (auto* entries : {&table.bad, &table.warnings}) {
    for (auto left = in.get<uint32_t>(); left > 0; --left) entries->push_back(get_entry(in));
  }
  return table;
}

/// Whether all payloads are as the table says and fill the file up to it.
bool payloads_are_whole(std::span<const std::byte> payloads, const UnitTable& table) {
  uint64_t offset = 0;
  for (const UnitSample& sample : table.samples) {
    if (sample.payload_offset != offset || sample.payload_bytes > payloads.size() - offset)
      return false;
    if (crc32c(payloads.subspan(offset, sample.payload_bytes)) != sample.payload_crc) return false;
    offset += sample.payload_bytes;
  }
  return offset == payloads.size();
}

}  // namespace

uint64_t records_hash(std::span<const SourceItem> items) {
  ByteWriter out;
  for (const SourceItem& item : items) {
    if (const auto* bad = std::get_if<LedgerEntry>(&item)) {
      put_entry(out, *bad);
      continue;
    }
    const auto& record = std::get<Record>(item);
    out.put(record.row);
    put_string(out, record.key);
    put_string(out, record.root);
    put_string(out, record.label);
    out.put(record.repeat);
    out.put(record.source);
    out.put(static_cast<uint8_t>(record.orientation));
    out.put(static_cast<uint8_t>(record.conversation.document));
    for (size_t i = 0; i < record.images.size(); ++i) {
      put_string(out, record.images[i]);
      if (const std::string* content = record.content(i))
        out.put(xxh3_64(std::string_view(*content)));
    }
    for (const text::Turn& turn : record.conversation.turns) {
      out.put(static_cast<uint8_t>(turn.role));
      put_string(out, turn.text);
    }
  }
  return xxh3_64(out.take());
}

UnitWriter::UnitWriter(std::filesystem::path aside)
    : aside_(std::move(aside)), file_(File::create(aside_)) {}

void UnitWriter::add(const UnitOutcome& outcome) {
  const auto* sample = std::get_if<BuiltSample>(&outcome);
  if (sample == nullptr) {
    table_.bad.push_back(std::get<LedgerEntry>(outcome));
    return;
  }
  if (sample->payload.size() > UINT32_MAX)
    throw DataError("sample \"{}\" has {} bytes, over 4 GiB", sample->key, sample->payload.size());
  table_.samples.push_back({.row = sample->row,
                            .key = sample->key,
                            .size = sample->size,
                            .width = sample->width,
                            .height = sample->height,
                            .payload_offset = offset_,
                            .payload_bytes = static_cast<uint32_t>(sample->payload.size()),
                            .payload_crc = crc32c(sample->payload),
                            .repeat = sample->repeat,
                            .source = sample->source,
                            .picture_hashes = sample->picture_hashes,
                            .original = sample->original,
                            .cut = sample->cut});
  table_.warnings.insert(table_.warnings.end(), sample->warnings.begin(), sample->warnings.end());
  file_.write(sample->payload);
  offset_ += sample->payload.size();
}

UnitTable UnitWriter::finish(const std::filesystem::path& path, uint64_t records_hash,
                             uint32_t unit) {
  ByteWriter tail;
  const std::string table = encode_table(table_);
  tail.put_text(table);
  tail.put(static_cast<uint64_t>(table.size()));
  tail.put(records_hash);
  std::string end = tail.take();
  table_.content_hash = xxh3_64(table);
  const uint64_t hash = xxh3_64(end);
  end.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  end += kMagic;
  file_.write(end);
  file_.sync();
  file_.close();
  std::error_code error;
  std::filesystem::rename(aside_, path, error);
  if (error) throw IoError("{}: cannot rename into place: {}", path.string(), error.message());
  fsync_directory(path.parent_path());
  for (UnitSample& sample : table_.samples) sample.unit = unit;
  return std::move(table_);
}

std::optional<UnitTable> read_unit(const std::filesystem::path& path, uint64_t records_hash,
                                   uint32_t unit, UnitCheck check) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() < kTailBytes) return std::nullopt;
  ByteReader tail(bytes.last(kTailBytes), "unit");
  const auto table_bytes = tail.get<uint64_t>();
  const auto records = tail.get<uint64_t>();
  const auto hash = tail.get<uint64_t>();
  const auto magic = tail.take(kMagic.size());
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic ||
      records != records_hash || table_bytes > bytes.size() - kTailBytes) {
    return std::nullopt;
  }
  const uint64_t begin = bytes.size() - kTailBytes - table_bytes;
  if (xxh3_64(bytes.subspan(begin, table_bytes + kNumbersBytes)) != hash) return std::nullopt;
  UnitTable table = parse_table(bytes.subspan(begin, table_bytes), unit);
  table.content_hash = xxh3_64(bytes.subspan(begin, table_bytes));
  if (check == UnitCheck::kAll && !payloads_are_whole(bytes.first(begin), table))
    return std::nullopt;
  return table;
}

}  // namespace mm::data
