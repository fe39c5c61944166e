#pragma once
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

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
  using Entry = std::pair<uint32_t, std::shared_ptr<const ShardReader>>;
  const std::vector<std::filesystem::path> paths_;
  const size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> recent_;
  std::unordered_map<uint32_t, std::list<Entry>::iterator> open_;
};

}  // namespace mm::data
