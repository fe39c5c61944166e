#pragma once
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/data/pack_dataset.h"
#include "lib/data/pack_workspace.h"
#include "lib/data/shard_layout.h"

namespace mm::data {

/// Writes the shards together with the other tasks of the job and returns what the manifest says of
/// them, in order. A task that finished a shard leaves a note with its hash, so nobody reads it
/// again.
std::vector<ShardEntry> pack_shards(const ShardInput& input, const std::vector<ShardPlan>& plans,
                                    const PackRun& run, PackWorkspace& workspace);

}  // namespace mm::data
