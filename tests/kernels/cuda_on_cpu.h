#pragma once
#include <cstdint>
#include <functional>

// Enough of CUDA's language to compile kernels/cuda/*.cuh as C++ and to run a kernel block by block
// on the CPU: its threads are fibers of one thread, which yield at __syncthreads and in shuffles.
// Shows that indices, bounds, reductions and barriers are right; says nothing about speed or about
// the compiler for the device. Include it before the .cuh; not thread-safe.

#define __global__
#define __device__
#define __shared__ static

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace mm::kernels::test {

/// Runs `kernel` once for each thread of each block. Throws InternalError if a barrier is left
/// waiting by threads that ended, which would hang or be undefined on a device.
void run_grid(dim3 grid, unsigned threads, const std::function<void()>& kernel);

/// Waits for the block's (or this warp's) other threads.
void block_barrier();
void warp_barrier();
/// Where lane `lane` of this thread's warp leaves a value for the others.
float& warp_slot(unsigned lane);

}  // namespace mm::kernels::test

inline void __syncthreads() { mm::kernels::test::block_barrier(); }

inline float __shfl_xor_sync(unsigned /*mask*/, float value, int lane_mask) {
  namespace test = mm::kernels::test;
  const unsigned lane = threadIdx.x % 32;
  test::warp_slot(lane) = value;
  test::warp_barrier();
  const float other = test::warp_slot(lane ^ static_cast<unsigned>(lane_mask));
  test::warp_barrier();
  return other;
}
