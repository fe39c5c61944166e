#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/data/index.h"
#include "lib/data/pack_unit.h"

namespace mm::data {

/// Sorts by tokens, equal lengths by source row: the rows of the index, so the ids of the samples.
void sort_for_shards(std::vector<UnitSample>& samples);

/// How rows follow one another on disk: by length as in the index, or in the order of a plan.
struct ShardOrder {
  std::vector<uint32_t> rows;        ///< a permutation of all rows
  std::vector<uint64_t> group_ends;  ///< ascending positions in `rows`, the last is its size; a
                                     ///< group (a pack) stays in one shard. Empty: no groups
};
/// Rows as they are.
ShardOrder order_by_length(size_t rows);

/// One shard to be: positions [begin, end) of the order.
struct ShardPlan {
  std::string file;
  size_t begin = 0, end = 0;
  uint64_t bytes = 0;      ///< of the finished file
  uint64_t plan_hash = 0;  ///< of what it holds, stored in its header
};

/// All there is to write shards from.
struct ShardInput {
  std::vector<UnitSample> samples;    ///< rows of the index
  std::vector<uint64_t> unit_hashes;  ///< content hash of each unit
  ShardOrder order;
};

/// Cuts the order into shards of about `shard_bytes`; at least one group each. Pure.
std::vector<ShardPlan> plan_shards(const ShardInput& input, uint64_t shard_bytes);

/// Rows of the index for all shards. Pure.
std::vector<IndexRow> index_rows(const ShardInput& input, std::span<const ShardPlan> shards);

/// Copies the samples of one shard from their units' files into `aside`, then renames to `path`.
/// Throws DataError naming the unit's file if a payload has changed since it was written.
ShardEntry write_shard(const std::filesystem::path& path, const std::filesystem::path& aside,
                       const ShardPlan& plan, const ShardInput& input,
                       const std::function<std::filesystem::path(uint32_t)>& unit_path);

}  // namespace mm::data
