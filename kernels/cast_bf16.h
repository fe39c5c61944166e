#pragma once
#include <cstdint>

namespace mm::kernels {

/// y[i] = bf16(x[i]), round to nearest even, for i in [0, count): the compute copy from the fp32
/// master. Exact: all twins give the same bits. Memory-bound: 4 bytes read and 2 written an
/// element. x and y must not overlap.
void cast_bf16_reference(const float* x, uint16_t* y,
                         int64_t count);  ///< plain loop by frexp in double, kept for ever
void cast_bf16_cpu(const float* x, uint16_t* y, int64_t count);

/// CUDA twin (in the CUDA shared object; sm_80, sm_90): device pointers, asynchronous on `stream`
/// (a cudaStream_t). Returns the cudaError_t of the launch, 0 when it was accepted.
extern "C" int mm_cast_bf16_cuda(const float* x, uint16_t* y, int64_t count, void* stream);

}  // namespace mm::kernels
