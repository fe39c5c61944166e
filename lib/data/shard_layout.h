#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/data/index.h"
#include "lib/data/pack_unit.h"

namespace mm::data {

/// One shard to be: samples [begin, end) of the sorted list, which are rows [begin, end) of the
/// index.
struct ShardPlan {
  std::string file;
  size_t begin = 0, end = 0;
  uint64_t bytes = 0;      ///< of the finished file
  uint64_t plan_hash = 0;  ///< of what it holds, stored in its header
};

/// Sorts by tokens, equal lengths by source row, so that neighbours in a shard are of one length.
void sort_for_shards(std::vector<UnitSample>& samples);

/// Cuts the sorted list into shards of about `shard_bytes`; at least one sample each.
/// `unit_hashes[u]` is the content hash of unit u. Pure.
std::vector<ShardPlan> plan_shards(std::span<const UnitSample> samples,
                                   std::span<const uint64_t> unit_hashes, uint64_t shard_bytes);

/// Rows of the index for all shards, in order. Pure.
std::vector<IndexRow> index_rows(std::span<const UnitSample> samples,
                                 std::span<const ShardPlan> shards);

/// Copies the samples of one shard from their units' files. Leaves a file that already holds just
/// this alone.
void write_shard(const std::filesystem::path& directory, const ShardPlan& plan,
                 std::span<const UnitSample> samples,
                 const std::function<std::filesystem::path(uint32_t)>& unit_path);

}  // namespace mm::data
