#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>
#include <vector>

namespace mm::data {

/// Allocates from a memory resource that goes along when a vector is moved or assigned (that of
/// std::pmr does not), so that pixels stay in the pinned memory they were read into. Holds the
/// resource when it was given shared, else the resource must outlive what it allocated. Numbers are
/// left as they are until they are written: growing costs no pass of zeros.
template <typename T>
class PixelAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  /// Null: the heap.
  PixelAllocator(std::pmr::memory_resource* memory = nullptr)
      : memory_(std::shared_ptr<void>(),
                memory != nullptr ? memory : std::pmr::new_delete_resource()) {}
  PixelAllocator(std::shared_ptr<std::pmr::memory_resource> memory) : memory_(std::move(memory)) {}
  template <typename U>
  PixelAllocator(const PixelAllocator<U>& other) : memory_(other.memory()) {}

  T* allocate(size_t count) {
    return static_cast<T*>(memory_->allocate(count * sizeof(T), alignof(std::max_align_t)));
  }
  void deallocate(T* at, size_t count) {
    memory_->deallocate(at, count * sizeof(T), alignof(std::max_align_t));
  }
  template <typename U>
  void construct(U*) {}
  template <typename U>
  void construct(U* at, U value) {
    *at = value;
  }
  const std::shared_ptr<std::pmr::memory_resource>& memory() const { return memory_; }
  bool operator==(const PixelAllocator& other) const { return memory_ == other.memory_; }

 private:
  std::shared_ptr<std::pmr::memory_resource> memory_;
};

using PixelVector = std::vector<uint8_t, PixelAllocator<uint8_t>>;

}  // namespace mm::data
