#pragma once
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/dist/group.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// A data set as a rank opened it: where, and the hash of its manifest.
struct OpenedData {
  std::string path, fingerprint;
};
std::vector<OpenedData> opened_data(const std::vector<std::unique_ptr<data::Dataset>>& sets);

/// Collective over `control`: throws DataError, the same on every rank, when ranks opened data sets
/// with different manifests; one line that names the path and who has what.
void check_same_data(dist::Group& control, const std::vector<OpenedData>& mine);

/// Where the recipe wants copies of shards, memory before disk; empty: nowhere.
std::vector<data::CacheTier> cache_tiers(const Recipe& recipe);

/// Page-locked host memory, which a GPU copies from without a detour; null without CUDA.
std::pmr::memory_resource* pinned_memory();

}  // namespace mm::run
