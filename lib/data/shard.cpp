#include "lib/data/shard.h"

#include <sys/mman.h>
#include <sys/vfs.h>

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
constexpr uint64_t kPageBytes = 4096;
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers lack

/// Can pages that were there fail to come back? Of file systems that are not known to be local,
/// that is assumed. Numbers: statfs(2).
bool is_network_file(const File& file) {
  constexpr std::array<uint32_t, 8> kLocal = {0xEF53,     0x58465342, 0x9123683E, 0x01021994,
                                              0x794C7630, 0x2FC12FC1, 0xF2F52010, 0x858458F6};
  struct statfs system {};
  if (::fstatfs(file.descriptor(), &system) != 0) return true;
  return std::find(kLocal.begin(), kLocal.end(), static_cast<uint32_t>(system.f_type)) ==
         kLocal.end();
}

uint32_t id_crc(uint64_t id) {
  return crc32c(std::string_view(reinterpret_cast<const char*>(&id), sizeof(id)));
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
  out.put(crc32c(payload, id_crc(id)));
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

ShardReader::ShardReader(const std::filesystem::path& path)
    : file_(File::open_read(path)), map_(path), remote_(is_network_file(file_)) {
  std::array<char, kShardHeaderBytes> header{};
  if (size_bytes() < header.size()) {
    throw DataError("{}: {} bytes, too short for a shard", path.string(), size_bytes());
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
  return place.bytes >= kRecordHeadBytes && place.offset <= size_bytes() &&
         place.bytes <= size_bytes() - place.offset;
}

Failure ShardReader::failure(const char* kind, RecordPlace place, const std::string& detail) const {
  return {kind,
          fmt::format("{}: record at byte {}: {}", file_.path().string(), place.offset, detail)};
}

void ShardReader::fetch(RecordPlace range) const {
  MM_CHECK(is_inside(range), "bytes {} + {} of {}", range.offset, range.bytes, size_bytes());
  const uint64_t first = range.offset / kPageBytes * kPageBytes;
  auto* const begin = const_cast<std::byte*>(map_.bytes().data() + first);
  const uint64_t bytes = range.offset + range.bytes - first;
  ::madvise(begin, bytes, MADV_WILLNEED);  // one read ahead rather than one a window
  if (::madvise(begin, bytes, kPopulateRead) == 0) return;
  // A kernel without that advice (before 5.14), or pages that cannot be had: reading says why.
  std::array<std::byte, size_t{64} << 10> block;
  for (uint64_t at = 0; at < range.bytes; at += block.size()) {
    const auto count = std::min<uint64_t>(block.size(), range.bytes - at);
    file_.read_at(range.offset + at, std::span(block).first(count));
  }
}

Failure ShardReader::mismatch(RecordPlace place) const {
  return failure("checksum", place, "checksum mismatch");
}

Result<OpenRecord> ShardReader::open(RecordPlace place, uint64_t id) const {
  if (!is_inside(place)) {
    return failure("truncated", place,
                   fmt::format("{} bytes expected, the file has {}", place.bytes, size_bytes()));
  }
  const auto record = map_.bytes().subspan(place.offset, place.bytes);
  ByteReader in(record, "record");
  const auto length = in.get<uint32_t>();
  const auto crc = in.get<uint32_t>();
  const auto stored_id = in.get<uint64_t>();
  const auto bytes = record.subspan(kRecordHeadBytes);
  const std::string_view payload(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (length != payload.size()) {
    return failure("length", place,
                   fmt::format("says {} bytes, the index {}", length, payload.size()));
  }
  if (stored_id != id) {
    // Damage, if the checksum says so; else another sample's record.
    if (crc32c(payload, id_crc(stored_id)) != crc) return mismatch(place);
    return failure("id", place, fmt::format("holds sample {}, expected {}", stored_id, id));
  }
  return OpenRecord{payload, id_crc(id), crc};
}

Result<std::string_view> ShardReader::view(RecordPlace place, uint64_t id, bool verify) const {
  const auto record = open(place, id);
  if (!record) return record.failure();
  if (verify && !RecordSum(*record).agrees()) return mismatch(place);
  return record->payload;
}

Result<std::string> ShardReader::read(RecordPlace place, uint64_t id) const {
  if (is_inside(place)) fetch(place);
  const auto payload = view(place, id);
  if (!payload) return payload.failure();
  return std::string(*payload);
}

}  // namespace mm::data
