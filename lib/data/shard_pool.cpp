#include "lib/data/shard_pool.h"

#include <utility>

#include "lib/base/error.h"

namespace mm::data {

ShardPool::ShardPool(std::vector<std::filesystem::path> paths, size_t capacity)
    : paths_(std::move(paths)), capacity_(capacity) {
  MM_CHECK(capacity_ > 0, "a pool of no files");
}

std::shared_ptr<const ShardReader> ShardPool::get(uint32_t shard) {
  MM_CHECK(shard < paths_.size(), "shard {} of {}", shard, paths_.size());
  const std::scoped_lock lock(mutex_);
  if (const auto found = open_.find(shard); found != open_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->second;
  }
  recent_.emplace_front(shard, std::make_shared<const ShardReader>(paths_[shard]));
  open_[shard] = recent_.begin();
  if (recent_.size() > capacity_) {
    open_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return recent_.front().second;
}

}  // namespace mm::data
