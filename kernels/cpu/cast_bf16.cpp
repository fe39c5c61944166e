#include "kernels/cast_bf16.h"

#include "kernels/bf16_bits.h"

namespace mm::kernels {

void cast_bf16_cpu(const float* x, uint16_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = bf16_bits(x[i]);
}

}  // namespace mm::kernels
