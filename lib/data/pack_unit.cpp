#include "lib/data/pack_unit.h"

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

constexpr std::string_view kMagic = "MMUNIT1\n";
constexpr size_t kHashBytes = 8;

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
  for (const auto* text : {&entry.key, &entry.path, &entry.kind, &entry.message})
    put_string(out, *text);
}

LedgerEntry get_entry(ByteReader& in) {
  LedgerEntry entry;
  entry.row = in.get<uint64_t>();
  entry.skipped = in.get<uint8_t>() != 0;
  for (auto* text : {&entry.key, &entry.path, &entry.kind, &entry.message}) *text = get_string(in);
  return entry;
}

void put_sample(ByteWriter& out, const BuiltSample& sample) {
  out.put(sample.row);
  put_string(out, sample.key);
  out.put(sample.size);
  out.put(sample.width);
  out.put(sample.height);
  put_string(out, sample.payload);
}

UnitSample get_sample(ByteReader& in, uint32_t unit) {
  UnitSample sample;
  sample.unit = unit;
  sample.row = in.get<uint64_t>();
  sample.key = get_string(in);
  sample.size = in.get<SampleSize>();
  sample.width = in.get<int32_t>();
  sample.height = in.get<int32_t>();
  sample.payload_bytes = in.get<uint32_t>();
  sample.payload_offset = in.offset();
  in.take(sample.payload_bytes);
  return sample;
}

/// Everything between the header and the hash; the hash is right, so damage here is our bug or
/// another version's file.
UnitTable parse_table(ByteReader& in, uint32_t unit) {
  UnitTable table;
  const auto count = in.get<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) {
    if (in.get<uint8_t>() == 0) {
      table.samples.push_back(get_sample(in, unit));
    } else {
      table.bad.push_back(get_entry(in));
    }
  }
  return table;
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
    for (const std::string& image : record.images) put_string(out, image);
    for (const text::Turn& turn : record.conversation.turns) {
      out.put(static_cast<uint8_t>(turn.role));
      put_string(out, turn.text);
    }
  }
  return xxh3_64(out.take());
}

void write_unit(const std::filesystem::path& path, uint64_t records_hash,
                std::span<const UnitOutcome> outcomes) {
  ByteWriter out;
  out.put_text(kMagic);
  out.put(records_hash);
  out.put(static_cast<uint32_t>(outcomes.size()));
  for (const UnitOutcome& outcome : outcomes) {
    out.put(static_cast<uint8_t>(outcome.index()));
    if (const auto* sample = std::get_if<BuiltSample>(&outcome)) {
      put_sample(out, *sample);
    } else {
      put_entry(out, std::get<LedgerEntry>(outcome));
    }
  }
  std::string content = out.take();
  const uint64_t hash = xxh3_64(content);
  content.append(reinterpret_cast<const char*>(&hash), kHashBytes);
  write_file_atomic(path, content);
}

std::optional<UnitTable> read_unit(const std::filesystem::path& path, uint64_t records_hash,
                                   uint32_t unit) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() < kMagic.size() + sizeof(records_hash) + kHashBytes) return std::nullopt;
  const auto body = bytes.first(bytes.size() - kHashBytes);
  ByteReader tail(bytes.last(kHashBytes), "unit");
  const uint64_t hash = xxh3_64(body);
  if (hash != tail.get<uint64_t>()) return std::nullopt;
  const std::string name = path.string();
  ByteReader in(body, name);
  const auto magic = in.take(kMagic.size());
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic)
    return std::nullopt;
  if (in.get<uint64_t>() != records_hash) return std::nullopt;
  UnitTable table = parse_table(in, unit);
  table.content_hash = hash;
  return table;
}

}  // namespace mm::data
