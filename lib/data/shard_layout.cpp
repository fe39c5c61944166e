#include "lib/data/shard_layout.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"
#include "lib/data/shard.h"

namespace mm::data {
namespace {

uint64_t record_bytes(const UnitSample& sample) { return kRecordHeadBytes + sample.payload_bytes; }

uint64_t plan_hash(std::span<const UnitSample> samples, std::span<const uint64_t> unit_hashes,
                   size_t first_row) {
  ByteWriter out;
  out.put(uint64_t{first_row});
  for (const UnitSample& sample : samples) {
    out.put(unit_hashes[sample.unit]);
    out.put(sample.payload_offset);
  }
  return xxh3_64(out.take());
}

bool is_written(const std::filesystem::path& path, const ShardPlan& plan) {
  if (!std::filesystem::exists(path)) return false;
  try {
    const ShardReader shard(path);
    return shard.plan_hash() == plan.plan_hash && shard.size_bytes() == plan.bytes;
  } catch (const DataError&) {
    return false;  // whatever it is, it is written again
  }
}

}  // namespace

void sort_for_shards(std::vector<UnitSample>& samples) {
  std::sort(samples.begin(), samples.end(), [](const UnitSample& a, const UnitSample& b) {
    return std::pair(a.size.tokens, a.row) < std::pair(b.size.tokens, b.row);
  });
}

std::vector<ShardPlan> plan_shards(std::span<const UnitSample> samples,
                                   std::span<const uint64_t> unit_hashes, uint64_t shard_bytes) {
  std::vector<ShardPlan> shards;
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint64_t bytes = record_bytes(samples[i]);
    if (shards.empty() || shards.back().bytes + bytes > shard_bytes) {
      shards.push_back({fmt::format("shard-{:05}.mms", shards.size()), i, i, kShardHeaderBytes});
    }
    ++shards.back().end;
    shards.back().bytes += bytes;
  }
  for (ShardPlan& shard : shards) {
    shard.plan_hash =
        plan_hash(samples.subspan(shard.begin, shard.end - shard.begin), unit_hashes, shard.begin);
  }
  return shards;
}

std::vector<IndexRow> index_rows(std::span<const UnitSample> samples,
                                 std::span<const ShardPlan> shards) {
  std::vector<IndexRow> rows;
  rows.reserve(samples.size());
  for (uint32_t s = 0; s < shards.size(); ++s) {
    uint64_t offset = kShardHeaderBytes;
    for (size_t i = shards[s].begin; i < shards[s].end; ++i) {
      const UnitSample& sample = samples[i];
      rows.push_back({sample.row, offset, s, static_cast<uint32_t>(record_bytes(sample)),
                      sample.size, sample.width, sample.height, sample.key});
      offset += record_bytes(sample);
    }
  }
  return rows;
}

void write_shard(const std::filesystem::path& directory, const ShardPlan& plan,
                 std::span<const UnitSample> samples,
                 const std::function<std::filesystem::path(uint32_t)>& unit_path) {
  const auto path = directory / plan.file;
  if (is_written(path, plan)) return;
  ShardWriter writer(path, plan.plan_hash);
  std::string payload;
  for (size_t i = plan.begin; i < plan.end; ++i) {
    const UnitSample& sample = samples[i];
    payload.resize(sample.payload_bytes);
    File::open_read(unit_path(sample.unit))
        .read_at(sample.payload_offset, std::as_writable_bytes(std::span(payload)));
    writer.append(i, payload);
  }
  MM_CHECK(writer.size_bytes() == plan.bytes, "{}: {} bytes, planned {}", path.string(),
           writer.size_bytes(), plan.bytes);
  writer.finish();
}

}  // namespace mm::data
