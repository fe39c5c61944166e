#include "lib/data/shard_pool.h"

#include <utility>

#include "lib/base/error.h"

namespace mm::data {

ShardPool::ShardPool(std::vector<std::filesystem::path> paths, size_t capacity)
    : paths_(std::move(paths)),
      open_([this](uint64_t shard) { return std::make_shared<const ShardReader>(paths_[shard]); },
            capacity) {
  MM_CHECK(capacity > 0, "a pool of no files");
}

std::shared_ptr<const ShardReader> ShardPool::get(uint32_t shard) {
  MM_CHECK(shard < paths_.size(), "shard {} of {}", shard, paths_.size());
  return open_.get(shard);
}

}  // namespace mm::data
