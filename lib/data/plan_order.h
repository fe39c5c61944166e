#pragma once
#include <filesystem>
#include <span>

#include "lib/data/shard_layout.h"

namespace mm::data {

/// Rows in the order of a plan file: pack after pack, each a group, so that a pack is one
/// contiguous read; then the rows that the plan drops, one by one. Ids stay what they are without a
/// plan. Throws as PlanFile does, and DataError unless the plan was made for exactly these samples
/// (of a set packed with the same options but without a plan).
ShardOrder order_of_plan(const std::filesystem::path& plan, std::span<const UnitSample> samples);

}  // namespace mm::data
