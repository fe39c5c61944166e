#pragma once
#include <cmath>

#include "kernels/element.h"

namespace mm::kernels {

// What adaptive layer norm does to a picture's rows (Peebles and Xie, "Scalable diffusion models
// with transformers", ICCV 2023). N pictures of P rows, C columns; shift, scale and gate have one
// row a picture. The modulated norm, row by row:
//   xhat[c] = (x[c] - mean_c(x)) r,   r = 1 / sqrt(mean_c((x - mean)^2) + eps)
//   y[c] = xhat[c] (1 + scale[c]) + shift[c]
//   dx[c] = r (g[c] - mean_c(g) - xhat[c] mean_c(g xhat)),   g = dy (1 + scale)
//   dshift[c] = sum over the picture's rows of dy[c],   dscale[c] = the same of dy[c] xhat[c]
// The gated sum behind attention and MLP:
//   y = x + gate f;   dx = dy,   df = gate dy,   dgate[c] = sum over the picture's rows of dy f
// Memory-bound: each operand is read once from memory (rows again from cache), each result written
// once. CPU: the same bits for every thread count and instruction set. CUDA: sums in another order
// (1e-6 of the row's norm in fp32), reruns bit-equal.

/// Rows of a picture whose sums over rows are taken in one go; partial sums are added in row order.
constexpr int64_t kAdaNormBlockRows = 64;

/// `stride`: elements from a picture's shift (scale, gate) to the next picture's.
struct PictureRows {
  int64_t pictures = 0, rows = 0, cols = 0, stride = 0;
};
/// Blocks of kAdaNormBlockRows that a picture has.
MM_HOST_DEVICE inline int64_t ada_norm_blocks(const PictureRows& s) {
  return (s.rows + kAdaNormBlockRows - 1) / kAdaNormBlockRows;
}

template <typename A>
MM_HOST_DEVICE inline A modulated(A x, A mean, A r, A shift, A scale) {
  return (x - mean) * r * (A(1) + scale) + shift;
}
/// `mean_g` = mean_c(g), `mean_gx` = mean_c(g xhat).
template <typename A>
MM_HOST_DEVICE inline A modulated_input_grad(A g, A xhat, A r, A mean_g, A mean_gx) {
  return r * (g - mean_g - xhat * mean_gx);
}

/// x, y [pictures, rows, cols]; mean, r [pictures * rows].
template <typename T>
struct ModulatedNormForward {
  const T *x, *shift, *scale;
  double eps;
  T* y;
  Acc<T>*mean, *r;
};
template <typename T>
void modulated_norm_forward(const PictureRows& shape, const ModulatedNormForward<T>& p);
void modulated_norm_forward_reference(const PictureRows& shape,
                                      const ModulatedNormForward<double>& p);

/// Adds to `dshift` and `dscale` [pictures, cols]; callers split rows over threads by blocks of
/// kAdaNormBlockRows with sums of their own.
template <typename T>
struct ModulatedNormBackward {
  const T *dy, *x, *scale;
  const Acc<T>*mean, *r;
  T* dx;
  Acc<T>*dshift, *dscale;
};
template <typename T>
void modulated_norm_backward(const PictureRows& shape, const ModulatedNormBackward<T>& p);
void modulated_norm_backward_reference(const PictureRows& shape,
                                       const ModulatedNormBackward<double>& p);

template <typename T>
struct GatedAddForward {
  const T *x, *gate, *f;
  T* y;  ///< may be x
};
template <typename T>
void gated_add_forward(const PictureRows& shape, const GatedAddForward<T>& p);
void gated_add_forward_reference(const PictureRows& shape, const GatedAddForward<double>& p);

/// Adds to `dgate` [pictures, cols].
template <typename T>
struct GatedAddBackward {
  const T *dy, *gate, *f;
  T* df;  ///< may be dy
  Acc<T>* dgate;
};
template <typename T>
void gated_add_backward(const PictureRows& shape, const GatedAddBackward<T>& p);
void gated_add_backward_reference(const PictureRows& shape, const GatedAddBackward<double>& p);

// CUDA twins; conventions as in rms_norm.h. `partial` is scratch, [2, pictures, ceil(rows /
// kAdaNormBlockRows), cols] (half of it for the gate); dshift, dscale and dgate are written, not
// added to.
extern "C" int mm_modulated_norm_forward_cuda_f32(const PictureRows&,
                                                  const ModulatedNormForward<float>&, void* stream);
extern "C" int mm_modulated_norm_forward_cuda_bf16(const PictureRows&,
                                                   const ModulatedNormForward<Bf16>&, void* stream);
extern "C" int mm_modulated_norm_backward_cuda_f32(const PictureRows&,
                                                   const ModulatedNormBackward<float>&,
                                                   float* partial, void* stream);
extern "C" int mm_modulated_norm_backward_cuda_bf16(const PictureRows&,
                                                    const ModulatedNormBackward<Bf16>&,
                                                    float* partial, void* stream);
extern "C" int mm_gated_add_forward_cuda_f32(const PictureRows&, const GatedAddForward<float>&,
                                             void* stream);
extern "C" int mm_gated_add_forward_cuda_bf16(const PictureRows&, const GatedAddForward<Bf16>&,
                                              void* stream);
extern "C" int mm_gated_add_backward_cuda_f32(const PictureRows&, const GatedAddBackward<float>&,
                                              float* partial, void* stream);
extern "C" int mm_gated_add_backward_cuda_bf16(const PictureRows&, const GatedAddBackward<Bf16>&,
                                               float* partial, void* stream);

}  // namespace mm::kernels
