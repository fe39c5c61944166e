#include "lib/data/shard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

uint32_t record_crc(uint64_t id, std::string_view payload) {
  const std::string_view head(reinterpret_cast<const char*>(&id), sizeof(id));
  return crc32c(payload, crc32c(head));
}

std::string shard_header(uint64_t plan_hash) {
  ByteWriter out;
  out.put_text(kShardMagic);
  out.put(kShardVersion);
  out.put(uint32_t{0});
  out.put(plan_hash);
  std::string header = out.take();
  const uint32_t crc = crc32c(header);
  header.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  header.resize(kShardHeaderBytes);
  return header;
}

}  // namespace

std::string frame_record(uint64_t id, std::string_view payload) {
  if (payload.size() > UINT32_MAX)
    throw DataError("sample {} has {} bytes, over 4 GiB", id, payload.size());
  ByteWriter out;
  out.put(static_cast<uint32_t>(payload.size()));
  out.put(record_crc(id, payload));
  out.put(id);
  out.put_text(payload);
  return out.take();
}

ShardWriter::ShardWriter(std::filesystem::path path, uint64_t plan_hash,
                         std::filesystem::path aside)
    : path_(std::move(path)),
      aside_(aside.empty() ? std::filesystem::path(path_.string() + ".tmp") : std::move(aside)),
      file_(File::create(aside_)) {
  buffer_ = shard_header(plan_hash);
  offset_ = buffer_.size();
}

RecordPlace ShardWriter::append(uint64_t id, std::string_view payload) {
  const std::string record = frame_record(id, payload);
  const RecordPlace place{offset_, record.size()};
  buffer_ += record;
  offset_ += record.size();
  if (buffer_.size() >= kFlushBytes) flush();
  return place;
}

void ShardWriter::flush() {
  file_.write(buffer_);
  hash_.add(buffer_);
  buffer_.clear();
}

void ShardWriter::finish() {
  flush();
  file_.sync();
  file_.close();
  std::error_code error;
  std::filesystem::rename(aside_, path_, error);
  if (error) throw IoError("{}: cannot rename into place: {}", path_.string(), error.message());
  fsync_directory(path_.parent_path());
}

ShardReader::ShardReader(const std::filesystem::path& path) : file_(File::open_read(path)) {
  size_bytes_ = file_.size_bytes();
  std::array<char, kShardHeaderBytes> header{};
  if (size_bytes_ < header.size()) {
    throw DataError("{}: {} bytes, too short for a shard", path.string(), size_bytes_);
  }
  file_.read_at(0, std::as_writable_bytes(std::span(header)));
  const std::string_view text(header.data(), header.size());
  if (text.substr(0, kShardMagic.size()) != kShardMagic) {
    throw DataError("{}: not an mmkit shard (begins with other bytes)", path.string());
  }
  uint32_t version = 0;
  std::memcpy(&version, header.data() + 8, sizeof(version));
  if (version != kShardVersion) {
    throw DataError("{}: shard version {}, this mmshard reads {}", path.string(), version,
                    kShardVersion);
  }
  std::memcpy(&plan_hash_, header.data() + 16, sizeof(plan_hash_));
  if (text != shard_header(plan_hash_)) throw DataError("{}: damaged shard header", path.string());
}

bool ShardReader::is_inside(RecordPlace place) const {
  return place.bytes >= kRecordHeadBytes && place.offset <= size_bytes_ &&
         place.bytes <= size_bytes_ - place.offset;
}

Failure ShardReader::failure(const char* kind, RecordPlace place, const std::string& detail) const {
  return {kind,
          fmt::format("{}: record at byte {}: {}", file_.path().string(), place.offset, detail)};
}

Failure ShardReader::outside(RecordPlace place) const {
  return failure("truncated", place,
                 fmt::format("{} bytes expected, the file has {}", place.bytes, size_bytes_));
}

/// The payload, if head and index agree about it.
Result<std::string> ShardReader::check(std::span<const std::byte> head, std::string payload,
                                       RecordPlace place, uint64_t id) const {
  ByteReader in(head, "record");
  const auto length = in.get<uint32_t>();
  const auto crc = in.get<uint32_t>();
  const auto stored_id = in.get<uint64_t>();
  if (length != place.bytes - kRecordHeadBytes) {
    return failure(
        "length", place,
        fmt::format("says {} bytes, the index {}", length, place.bytes - kRecordHeadBytes));
  }
  if (record_crc(stored_id, payload) != crc) return failure("checksum", place, "checksum mismatch");
  if (stored_id != id)
    return failure("id", place, fmt::format("holds sample {}, expected {}", stored_id, id));
  return payload;
}

Result<std::string> ShardReader::read(RecordPlace place, uint64_t id) const {
  if (!is_inside(place)) return outside(place);
  // Head and payload apart: a large payload is not moved to cut the head off.
  std::array<std::byte, kRecordHeadBytes> head{};
  std::string payload(place.bytes - kRecordHeadBytes, '\0');
  file_.read_at(place.offset, head);
  file_.read_at(place.offset + kRecordHeadBytes, std::as_writable_bytes(std::span(payload)));
  return check(head, std::move(payload), place, id);
}

std::vector<Result<std::string>> ShardReader::read_run(std::span<const RecordPlace> places,
                                                       std::span<const uint32_t> ids) const {
  std::vector<Result<std::string>> results;
  if (places.size() == 1) {
    results.push_back(read(places[0], ids[0]));
    return results;
  }
  if (!std::all_of(places.begin(), places.end(), [&](auto place) { return is_inside(place); })) {
    for (const RecordPlace& place : places) results.push_back(outside(place));
    return results;
  }
  const uint64_t begin = places.front().offset;
  std::string run(places.back().offset + places.back().bytes - begin, '\0');
  file_.read_at(begin, std::as_writable_bytes(std::span(run)));
  for (size_t i = 0; i < places.size(); ++i) {
    const uint64_t at = places[i].offset - begin;
    const auto head = std::as_bytes(std::span(run)).subspan(at, kRecordHeadBytes);
    results.push_back(check(head,
                            run.substr(at + kRecordHeadBytes, places[i].bytes - kRecordHeadBytes),
                            places[i], ids[i]));
  }
  return results;
}

}  // namespace mm::data
