#include "kernels/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace mm::kernels {
namespace {

// In front of each block; its size keeps the block's alignment.
struct alignas(64) Header {
  int64_t size_class;
};

constexpr size_t kSmallest = 256;
constexpr size_t kHugePage = size_t{2} << 20;
// Smaller blocks would waste too much of their last huge page.
constexpr size_t kHugeBlock = 16 * kHugePage;
constexpr size_t kPage = 4096;
constexpr size_t kMappedBlock = size_t{1} << 20;
constexpr int64_t kMostKept = int64_t{64} << 20;

// Class 8 e + f holds 256 * 2^e * (8 + f) / 8 bytes.
size_t class_bytes(int size_class) {
  return (kSmallest << (size_class / 8)) / 8 * static_cast<size_t>(8 + size_class % 8);
}

int class_of(size_t bytes) {
  const size_t units = std::max(bytes, kSmallest);
  const int octave = std::bit_width(units / kSmallest) - 1;
  const size_t step = (kSmallest << octave) / 8;
  return octave * 8 + static_cast<int>((units - (kSmallest << octave) + step - 1) / step);
}

/// A block of this many bytes after its header, as the system is asked for it.
struct Extent {
  size_t bytes = 0, alignment = 0;
  bool mapped = false;  ///< on its own, so that giving it back frees its pages at once
};
Extent extent_of(size_t bytes) {
  const bool huge = bytes >= kHugeBlock, mapped = bytes >= kMappedBlock;
  const size_t alignment = huge ? kHugePage : (mapped ? kPage : sizeof(Header));
  return {(bytes + sizeof(Header) + alignment - 1) / alignment * alignment, alignment, mapped};
}

// Maps more than is wanted and cuts both ends off, since mmap aligns to pages only.
void* map_aligned(const Extent& extent) {
  const size_t whole = extent.bytes + extent.alignment;
  void* mapped = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(mapped),
             first = (begin + extent.alignment - 1) / extent.alignment * extent.alignment,
             end = first + extent.bytes;
  if (first > begin) munmap(mapped, first - begin);
  if (begin + whole > end) munmap(reinterpret_cast<void*>(end), begin + whole - end);
  return reinterpret_cast<void*>(first);
}

void* from_system(size_t bytes) {
  const Extent extent = extent_of(bytes);
  if (!extent.mapped) return std::aligned_alloc(extent.alignment, extent.bytes);
  void* memory = map_aligned(extent);
  // Only advice: without huge pages the block is as good, and slower.
  if (memory != nullptr && extent.alignment == kHugePage)
    (void)madvise(memory, extent.bytes, MADV_HUGEPAGE);
  return memory;
}

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }

void to_system(void* block) noexcept {
  Header* header = header_of(block);
  const Extent extent = extent_of(class_bytes(static_cast<int>(header->size_class)));
  if (extent.mapped) {
    munmap(header, extent.bytes);
  } else {
    std::free(header);
  }
}

}  // namespace

void* BlockCache::take_idle(int first_class) {
  const int last = std::min(first_class + 2, kClasses - 1);
  for (int c = first_class; c <= last; ++c) {
    auto& blocks = idle_[static_cast<size_t>(c)];
    if (blocks.empty()) continue;
    void* block = blocks.back();
    blocks.pop_back();
    counts_.idle_bytes -= static_cast<int64_t>(class_bytes(c));
    ++counts_.reused;
    return block;
  }
  return nullptr;
}

// The largest idle blocks go first: fewest calls.
void BlockCache::drop_excess() noexcept {
  const int64_t budget = highest_live_bytes_ + std::min(highest_live_bytes_ / 8, kMostKept);
  for (int c = kClasses - 1; c >= 0; --c) {
    auto& blocks = idle_[static_cast<size_t>(c)];
    while (!blocks.empty() && counts_.live_bytes + counts_.idle_bytes > budget) {
      to_system(blocks.back());
      blocks.pop_back();
      counts_.idle_bytes -= static_cast<int64_t>(class_bytes(c));
    }
    if (counts_.live_bytes + counts_.idle_bytes <= budget) return;
  }
}

void* BlockCache::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > class_bytes(kClasses - 1)) throw std::bad_alloc();
  const int size_class = class_of(bytes);
  std::unique_lock lock(mutex_);
  ++counts_.requests;
  void* block = take_idle(size_class);
  if (block == nullptr) {
    lock.unlock();
    void* memory = from_system(class_bytes(size_class));
    if (memory == nullptr) {
      trim();
      memory = from_system(class_bytes(size_class));
    }
    if (memory == nullptr) throw std::bad_alloc();
    block = new (memory) Header{size_class} + 1;
    lock.lock();
  }
  counts_.live_bytes +=
      static_cast<int64_t>(class_bytes(static_cast<int>(header_of(block)->size_class)));
  counts_.peak_live_bytes = std::max(counts_.peak_live_bytes, counts_.live_bytes);
  highest_live_bytes_ = std::max(highest_live_bytes_, counts_.live_bytes);
  drop_excess();
  return block;
}

void BlockCache::release(void* block) noexcept {
  if (block == nullptr) return;
  const auto size_class = static_cast<int>(header_of(block)->size_class);
  const size_t bytes = class_bytes(size_class);
  const std::lock_guard lock(mutex_);
  counts_.live_bytes -= static_cast<int64_t>(bytes);
  if (static_cast<size_t>(counts_.idle_bytes) + bytes > max_idle_bytes_) {
    to_system(block);
    return;
  }
  try {
    idle_[static_cast<size_t>(size_class)].push_back(block);
  } catch (const std::bad_alloc&) {
    to_system(block);  // no room to remember it
    return;
  }
  counts_.idle_bytes += static_cast<int64_t>(bytes);
}

void BlockCache::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& blocks : idle_) {
    for (void* block : blocks) to_system(block);
    blocks.clear();
  }
  counts_.idle_bytes = 0;
}

BlockCache::Counts BlockCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void BlockCache::reset_peak() {
  const std::lock_guard lock(mutex_);
  counts_.peak_live_bytes = counts_.live_bytes;
}

}  // namespace mm::kernels
