#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>

namespace mm::data {

/// Memory for the pixels of batches that is used again: a block that comes back waits for the next
/// batch of its size, so that its pages are neither zeroed nor pinned anew (a fresh page costs more
/// than copying what goes into it). Blocks begin on a page. Sizes are rounded up by at most an
/// eighth; below 64 KiB everything goes to `upstream`. Blocks that wait are never more bytes than
/// were in use at once: larger ones go back first. Thread-safe. Batches hold their pool through
/// PixelAllocator, so it may be dropped before them.
class PixelPool final : public std::pmr::memory_resource {
 public:
  /// `upstream` must outlive the pool; null: the heap.
  explicit PixelPool(std::pmr::memory_resource* upstream = nullptr);
  ~PixelPool() override;
  PixelPool(const PixelPool&) = delete;

  /// Of pooled blocks.
  uint64_t used_bytes() const;
  uint64_t waiting_bytes() const;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* block, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* const upstream_;
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> waiting_;  ///< by size
  uint64_t used_bytes_ = 0, waiting_bytes_ = 0, most_used_bytes_ = 0;
};

}  // namespace mm::data
