#pragma once
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <type_traits>
#include <vector>

namespace mm::data {

/// Allocates from a memory resource that goes along when a vector is moved or assigned (that of
/// std::pmr does not), so that pixels stay in the pinned memory they were read into. Numbers are
/// left as they are until they are written: growing costs no pass of zeros.
template <typename T>
class PixelAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  PixelAllocator(std::pmr::memory_resource* memory = std::pmr::new_delete_resource())
      : memory_(memory) {}
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
  std::pmr::memory_resource* memory() const { return memory_; }
  bool operator==(const PixelAllocator& other) const { return memory_ == other.memory_; }

 private:
  std::pmr::memory_resource* memory_;
};

using PixelVector = std::vector<uint8_t, PixelAllocator<uint8_t>>;

}  // namespace mm::data
