#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "lib/base/json.h"
#include "lib/data/dataset.h"

namespace mm::data {

/// What a data set is, in figures: from manifest and index.
struct DatasetInfo {
  std::string directory, fingerprint;
  DatasetManifest manifest;
  uint64_t shard_bytes = 0;
  /// Tokens of a sample at the 0th, 10th, 50th, 90th, 99th and 100th percentile (nearest rank).
  std::array<int32_t, 6> token_percentiles{};
  uint64_t text_only_samples = 0;
};
inline constexpr std::array<int, 6> kPercentiles = {0, 10, 50, 90, 99, 100};

DatasetInfo describe_dataset(const Dataset& set);
/// With "schema": 1.
Json to_json(const DatasetInfo& info);

}  // namespace mm::data
