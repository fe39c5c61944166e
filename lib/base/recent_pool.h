#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace mm {

/// What costs something to hold, a file's descriptor for example, by number: made when it is first
/// asked for, at most `capacity` > 0 of them kept, least recently used first out. Thread-safe, one
/// is made at a time; one that is in use stays valid after it left the pool.
template <typename T>
class RecentPool {
 public:
  using Make = std::function<std::shared_ptr<const T>(uint64_t number)>;
  RecentPool(Make make, size_t capacity) : make_(std::move(make)), capacity_(capacity) {}

  /// Throws what `make` throws.
  std::shared_ptr<const T> get(uint64_t number) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = kept_.find(number); found != kept_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
    recent_.emplace_front(number, make_(number));
    kept_[number] = recent_.begin();
    if (recent_.size() > capacity_) {
      kept_.erase(recent_.back().first);
      recent_.pop_back();
    }
    return recent_.front().second;
  }

 private:
  using Entry = std::pair<uint64_t, std::shared_ptr<const T>>;
  const Make make_;
  const size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> recent_;
  std::unordered_map<uint64_t, typename std::list<Entry>::iterator> kept_;
};

}  // namespace mm
