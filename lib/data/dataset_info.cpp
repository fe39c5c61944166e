#include "lib/data/dataset_info.h"

#include <algorithm>
#include <vector>

namespace mm::data {

DatasetInfo describe_dataset(const Dataset& set) {
  DatasetInfo info{set.directory().string(), set.fingerprint(), set.manifest()};
  for (const ShardEntry& shard : info.manifest.shards) info.shard_bytes += shard.file.bytes;
  std::vector<int32_t> tokens;
  for (const SampleSize& size : set.sizes()) {
    tokens.push_back(size.tokens);
    info.text_only_samples += size.images == 0;
  }
  std::sort(tokens.begin(), tokens.end());
  for (size_t i = 0; i < kPercentiles.size() && !tokens.empty(); ++i) {
    info.token_percentiles[i] =
        tokens[(tokens.size() - 1) * static_cast<size_t>(kPercentiles[i]) / 100];
  }
  return info;
}

Json to_json(const DatasetInfo& info) {
  const Json manifest = to_json(info.manifest);
  Json json = {{"schema", 1},
               {"directory", info.directory},
               {"fingerprint", info.fingerprint},
               {"shards", info.manifest.shards.size()},
               {"shard_bytes", info.shard_bytes},
               {"text_only_samples", info.text_only_samples}};
  for (const auto* key : {"counts", "tokenizer", "template", "max_length", "pictures"})
    json[key] = manifest[key];
  if (manifest.contains("bucketing")) json["bucketing"] = manifest["bucketing"];
  if (manifest.contains("duplicates")) json["duplicates"] = manifest["duplicates"];
  for (size_t i = 0; i < kPercentiles.size(); ++i) {
    json["token_percentiles"]["p" + std::to_string(kPercentiles[i])] = info.token_percentiles[i];
  }
  return json;
}

}  // namespace mm::data
