#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace mm::kernels {

/// Memory blocks that are kept for the next request instead of going back to the system: a training
/// step asks for the same sizes again and again, and fresh pages cost more than what is computed on
/// them. Large blocks lie on huge pages where the system has them. Sizes are rounded up to eighths
/// of a power of two, and a request takes an idle block at most a quarter larger than that. What is
/// live and idle together stays within an eighth, and within 64 MiB, of the most that was ever
/// live, so keeping blocks costs a process little memory at its peak. Counts what is live and the
/// most that was. Thread-safe; O(1) a call, but for blocks that go back to the system.
class BlockCache {
 public:
  /// Idle blocks beyond `max_idle_bytes` go back to the system.
  explicit BlockCache(size_t max_idle_bytes) : max_idle_bytes_(max_idle_bytes) {}
  ~BlockCache() { trim(); }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// At least `bytes` bytes, aligned to 64, not initialised; null for 0 bytes. Throws
  /// std::bad_alloc, after having given back what is idle, when the system has no more.
  void* allocate(size_t bytes);
  /// Takes back what `allocate` of this cache gave; null is ignored.
  void release(void* block) noexcept;
  /// Gives all idle blocks back to the system.
  void trim() noexcept;

  /// Bytes are those of the rounded sizes.
  struct Counts {
    int64_t live_bytes = 0, peak_live_bytes = 0, idle_bytes = 0;
    int64_t requests = 0, reused = 0;
  };
  Counts counts() const;
  /// The peak counts from now on.
  void reset_peak();

 private:
  static constexpr int kClasses = 8 * 48;
  void* take_idle(int first_class);
  void drop_excess() noexcept;

  const size_t max_idle_bytes_;
  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> idle_;
  Counts counts_;
  int64_t highest_live_bytes_ = 0;  ///< never reset
};

}  // namespace mm::kernels
