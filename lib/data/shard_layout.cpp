#include "lib/data/shard_layout.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"
#include "lib/data/shard.h"

namespace mm::data {
namespace {

constexpr size_t kOpenUnits = 256;

uint64_t record_bytes(const UnitSample& sample) { return kRecordHeadBytes + sample.payload_bytes; }

uint64_t plan_hash(const ShardInput& input, const ShardPlan& shard) {
  ByteWriter out;
  for (size_t i = shard.begin; i < shard.end; ++i) {
    const uint32_t row = input.order.rows[i];
    out.put(row);
    out.put(input.unit_hashes[input.samples[row].unit]);
    out.put(input.samples[row].payload_offset);
  }
  return xxh3_64(out.take());
}

/// Payloads from units' files, of which a bounded number is open at a time.
class PayloadReader {
 public:
  explicit PayloadReader(const std::function<std::filesystem::path(uint32_t)>& unit_path)
      : unit_path_(unit_path) {}

  void read(const UnitSample& sample, std::string& payload) {
    payload.resize(sample.payload_bytes);
    auto found = open_.find(sample.unit);
    if (found == open_.end()) {
      if (open_.size() >= kOpenUnits) open_.clear();
      found = open_.emplace(sample.unit, File::open_read(unit_path_(sample.unit))).first;
    }
    found->second.read_at(sample.payload_offset, std::as_writable_bytes(std::span(payload)));
    if (crc32c(payload) != sample.payload_crc) {
      throw DataError("{}: changed since it was written; delete it and run again",
                      unit_path_(sample.unit).string());
    }
  }

 private:
  const std::function<std::filesystem::path(uint32_t)>& unit_path_;
  std::unordered_map<uint32_t, File> open_;
};

}  // namespace

void sort_for_shards(std::vector<UnitSample>& samples) {
  // Copies of a row keep their order.
  std::stable_sort(samples.begin(), samples.end(), [](const UnitSample& a, const UnitSample& b) {
    const auto key = [](const UnitSample& s) {
      return std::tuple(s.size.bucket.pixels(), s.size.bucket, s.size.tokens, s.row);
    };
    return key(a) < key(b);
  });
}

ShardOrder order_by_length(size_t rows) {
  ShardOrder order;
  order.rows.resize(rows);
  std::iota(order.rows.begin(), order.rows.end(), 0u);
  return order;
}

std::vector<ShardPlan> plan_shards(const ShardInput& input, uint64_t shard_bytes) {
  const ShardOrder& order = input.order;
  std::vector<ShardPlan> shards;
  size_t group = 0;
  for (size_t begin = 0, end = 0; begin < order.rows.size(); begin = end) {
    end = order.group_ends.empty() ? begin + 1 : order.group_ends[group++];
    uint64_t bytes = 0;
    for (size_t i = begin; i < end; ++i) bytes += record_bytes(input.samples[order.rows[i]]);
    if (shards.empty() || shards.back().bytes + bytes > shard_bytes) {
      shards.push_back(
          {fmt::format("shard-{:05}.mms", shards.size()), begin, begin, kShardHeaderBytes});
    }
    shards.back().end = end;
    shards.back().bytes += bytes;
  }
  for (ShardPlan& shard : shards) shard.plan_hash = plan_hash(input, shard);
  return shards;
}

std::vector<IndexRow> index_rows(const ShardInput& input, std::span<const ShardPlan> shards) {
  std::vector<IndexRow> rows(input.samples.size());
  for (uint32_t s = 0; s < shards.size(); ++s) {
    uint64_t offset = kShardHeaderBytes;
    for (size_t i = shards[s].begin; i < shards[s].end; ++i) {
      const uint32_t row = input.order.rows[i];
      const UnitSample& sample = input.samples[row];
      rows[row] = {sample.row,
                   offset,
                   s,
                   static_cast<uint32_t>(record_bytes(sample)),
                   sample.size,
                   sample.width,
                   sample.height,
                   sample.key,
                   sample.source};
      offset += record_bytes(sample);
    }
  }
  return rows;
}

ShardEntry write_shard(const std::filesystem::path& path, const std::filesystem::path& aside,
                       const ShardPlan& plan, const ShardInput& input,
                       const std::function<std::filesystem::path(uint32_t)>& unit_path) {
  ShardWriter writer(path, plan.plan_hash, aside);
  PayloadReader payloads(unit_path);
  std::string payload;
  for (size_t i = plan.begin; i < plan.end; ++i) {
    const uint32_t row = input.order.rows[i];
    payloads.read(input.samples[row], payload);
    writer.append(row, payload);
  }
  MM_CHECK(writer.size_bytes() == plan.bytes, "{}: {} bytes, planned {}", path.string(),
           writer.size_bytes(), plan.bytes);
  writer.finish();
  return {{plan.file, plan.bytes, writer.hash()}, plan.end - plan.begin};
}

}  // namespace mm::data
