#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "lib/base/recent_pool.h"
#include "lib/data/shard.h"

namespace mm::data {

/// Opens shards when they are first read and keeps at most `capacity` of them open, least recently
/// used first out. Thread-safe; a reader that is in use stays valid after it left the pool.
class ShardPool {
 public:
  explicit ShardPool(std::vector<std::filesystem::path> paths, size_t capacity = 256);
  /// Throws as ShardReader does. `shard` < number of paths.
  std::shared_ptr<const ShardReader> get(uint32_t shard);

 private:
  const std::vector<std::filesystem::path> paths_;
  RecentPool<ShardReader> open_;
};

}  // namespace mm::data
