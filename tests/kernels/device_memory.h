#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "lib/base/error.h"

namespace mm::kernels::test {

/// Throws DeviceError for a cudaError_t that is not 0.
inline void cuda_check(int status) {
  if (status != 0)
    throw DeviceError("CUDA: {}", cudaGetErrorString(static_cast<cudaError_t>(status)));
}

/// The launcher of T's type.
template <typename T, typename F, typename B>
auto pick(F f32, B bf16) {
  if constexpr (std::is_same_v<T, float>) {
    return f32;
  } else {
    return bf16;
  }
}

/// Device copies of host arrays that live as long as this object; written arrays go back to the
/// host by `collect`.
class DeviceArrays {
 public:
  DeviceArrays() = default;
  ~DeviceArrays() {
    for (void* p : owned_) cudaFree(p);
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  /// A copy of `count` elements; null for null.
  template <typename T>
  const T* in(const T* host, int64_t count) {
    if (host == nullptr) return nullptr;
    T* device = make<T>(count);
    cuda_check(cudaMemcpy(device, host, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDefault));
    return device;
  }
  /// The same for an array that the twin writes.
  template <typename T>
  T* out(T* host, int64_t count) {
    if (host == nullptr) return nullptr;
    T* device = const_cast<T*>(in<T>(host, count));
    back_.push_back([=] {
      cuda_check(
          cudaMemcpy(host, device, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDefault));
    });
    return device;
  }
  template <typename T>
  T* make(int64_t count) {
    void* p = nullptr;
    cuda_check(cudaMalloc(&p, std::max<size_t>(16, static_cast<size_t>(count) * sizeof(T))));
    owned_.push_back(p);
    return static_cast<T*>(p);
  }
  /// Waits for the device and copies back what was written.
  void collect() {
    cuda_check(cudaDeviceSynchronize());
    for (const auto& copy : back_) copy();
  }

 private:
  std::vector<void*> owned_;
  std::vector<std::function<void()>> back_;
};

/// Milliseconds of one call: `launch` is run once, then `rounds` times between two events.
double device_ms(int rounds, const std::function<void()>& launch);

}  // namespace mm::kernels::test
