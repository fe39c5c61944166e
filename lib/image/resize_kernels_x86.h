#pragma once
#include "lib/image/resize_kernels.h"

namespace mm::image {

#if defined(__x86_64__)
/// Weights as two 16-bit parts, w = high * 2^12 + low: vpmaddwd sums two products in 32 bits.
extern const ResizeKernels kAvx2Kernels;
/// Weights as three signed bytes, w = d2 * 2^16 + d1 * 2^8 + d0: vpdpbusd adds four products of an
/// unsigned and a signed byte to 32 bits without saturation. Needs AVX512BW and AVX512_VNNI.
extern const ResizeKernels kAvx512Kernels;
/// The gather that both use.
void rows_to_quads_avx2(const uint8_t* rows, size_t stride, size_t pixels, uint8_t* quads);
#endif

}  // namespace mm::image
