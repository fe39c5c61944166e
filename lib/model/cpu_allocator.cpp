#include "lib/model/cpu_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstring>

namespace mm::model {
namespace {

/// Above every allocator that LibTorch registers itself.
constexpr uint8_t kPriority = 10;

// LibTorch's deleter has no room for an object, and tensors of static storage are freed after main:
// the one cache of the process, never destroyed.
std::atomic<kernels::BlockCache*> cache{nullptr};

void give_back(void* block) { cache.load(std::memory_order_acquire)->release(block); }

class CacheAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = cache.load(std::memory_order_acquire)->allocate(bytes);
    return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

void install_cpu_allocator(int64_t max_idle_bytes) {
  static CacheAllocator allocator;
  static const bool installed = [&] {
    cache = new kernels::BlockCache(static_cast<size_t>(max_idle_bytes));
    c10::SetCPUAllocator(&allocator, kPriority);
    return true;
  }();
  (void)installed;
}

kernels::BlockCache* cpu_allocator() { return cache.load(std::memory_order_acquire); }

}  // namespace mm::model
