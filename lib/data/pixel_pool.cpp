#include "lib/data/pixel_pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

namespace mm::data {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kSmallestBytes = size_t{64} << 10;

/// Eight sizes an octave, whole pages.
size_t rounded(size_t bytes) {
  const size_t step = std::max(kPageBytes, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

PixelPool::PixelPool(std::pmr::memory_resource* upstream)
    : upstream_(upstream != nullptr ? upstream : std::pmr::new_delete_resource()) {}

PixelPool::~PixelPool() {
  for (const auto& [bytes, block] : waiting_) upstream_->deallocate(block, bytes, kPageBytes);
}

void* PixelPool::do_allocate(size_t bytes, size_t alignment) {
  if (bytes < kSmallestBytes) return upstream_->allocate(bytes, alignment);
  const size_t whole = rounded(bytes);
  {
    const std::scoped_lock lock(mutex_);
    used_bytes_ += whole;
    most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
    if (const auto found = waiting_.find(whole); found != waiting_.end()) {
      void* const block = found->second;
      waiting_.erase(found);
      waiting_bytes_ -= whole;
      return block;
    }
  }
  return upstream_->allocate(whole, kPageBytes);
}

void PixelPool::do_deallocate(void* block, size_t bytes, size_t alignment) {
  if (bytes < kSmallestBytes) return upstream_->deallocate(block, bytes, alignment);
  const size_t whole = rounded(bytes);
  std::vector<std::pair<size_t, void*>> too_many;
  {
    const std::scoped_lock lock(mutex_);
    used_bytes_ -= whole;
    waiting_.emplace(whole, block);
    waiting_bytes_ += whole;
    while (waiting_bytes_ > most_used_bytes_) {
      const auto largest = std::prev(waiting_.end());
      too_many.push_back(*largest);
      waiting_bytes_ -= largest->first;
      waiting_.erase(largest);
    }
  }
  for (const auto& [size, spare] : too_many) upstream_->deallocate(spare, size, kPageBytes);
}

uint64_t PixelPool::used_bytes() const {
  const std::scoped_lock lock(mutex_);
  return used_bytes_;
}

uint64_t PixelPool::waiting_bytes() const {
  const std::scoped_lock lock(mutex_);
  return waiting_bytes_;
}

}  // namespace mm::data
