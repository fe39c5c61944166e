#include "kernels/ada_norm.h"

namespace mm::kernels {

template <typename T>
MM_CLONES void modulated_norm_forward(const PictureRows& shape, const ModulatedNormForward<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  for (int64_t row = 0; row < shape.pictures * shape.rows; ++row) {
    const T *x = p.x + row * cols, *shift = p.shift + row / shape.rows * shape.stride,
            *scale = p.scale + row / shape.rows * shape.stride;
    T* y = p.y + row * cols;
    A sums[kLanes] = {}, squares[kLanes] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) sums[l] += load(x[c + l]);
    }
    for (int64_t c = whole; c < cols; ++c) sums[c - whole] += load(x[c]);
    const A mean = sum_lanes(sums) / A(cols);
    // The distances are summed, not the squares: a large mean leaves their digits alone.
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const A distance = load(x[c + l]) - mean;
        squares[l] += distance * distance;
      }
    }
    for (int64_t c = whole; c < cols; ++c)
      squares[c - whole] += (load(x[c]) - mean) * (load(x[c]) - mean);
    const A r = A(1) / std::sqrt(sum_lanes(squares) / A(cols) + A(p.eps));
    p.mean[row] = mean;
    p.r[row] = r;
    for (int64_t c = 0; c < cols; ++c)
      store(modulated(load(x[c]), mean, r, load(shift[c]), load(scale[c])), y[c]);
  }
}

template <typename T>
MM_CLONES void modulated_norm_backward(const PictureRows& shape,
                                       const ModulatedNormBackward<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  for (int64_t row = 0; row < shape.pictures * shape.rows; ++row) {
    const int64_t picture = row / shape.rows;
    const T *x = p.x + row * cols, *dy = p.dy + row * cols,
            *scale = p.scale + picture * shape.stride;
    T* dx = p.dx + row * cols;
    A *dshift = p.dshift + picture * cols, *dscale = p.dscale + picture * cols;
    const A mean = p.mean[row], r = p.r[row];
    A sums[kLanes] = {}, dots[kLanes] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const A g = load(dy[c + l]) * (A(1) + load(scale[c + l]));
        sums[l] += g;
        dots[l] += g * ((load(x[c + l]) - mean) * r);
      }
    }
    for (int64_t c = whole; c < cols; ++c) {
      const A g = load(dy[c]) * (A(1) + load(scale[c]));
      sums[c - whole] += g;
      dots[c - whole] += g * ((load(x[c]) - mean) * r);
    }
    const A mean_g = sum_lanes(sums) / A(cols), mean_gx = sum_lanes(dots) / A(cols);
    for (int64_t c = 0; c < cols; ++c) dshift[c] += load(dy[c]);
    for (int64_t c = 0; c < cols; ++c) dscale[c] += load(dy[c]) * ((load(x[c]) - mean) * r);
    for (int64_t c = 0; c < cols; ++c) {
      store(modulated_input_grad(load(dy[c]) * (A(1) + load(scale[c])), (load(x[c]) - mean) * r, r,
                                 mean_g, mean_gx),
            dx[c]);
    }
  }
}

template <typename T>
MM_CLONES void gated_add_forward(const PictureRows& shape, const GatedAddForward<T>& p) {
  const int64_t cols = shape.cols;
  for (int64_t row = 0; row < shape.pictures * shape.rows; ++row) {
    const T *x = p.x + row * cols, *f = p.f + row * cols,
            *gate = p.gate + row / shape.rows * shape.stride;
    T* y = p.y + row * cols;
    for (int64_t c = 0; c < cols; ++c) store(load(x[c]) + load(gate[c]) * load(f[c]), y[c]);
  }
}

template <typename T>
MM_CLONES void gated_add_backward(const PictureRows& shape, const GatedAddBackward<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols;
  for (int64_t row = 0; row < shape.pictures * shape.rows; ++row) {
    const int64_t picture = row / shape.rows;
    const T *dy = p.dy + row * cols, *f = p.f + row * cols, *gate = p.gate + picture * shape.stride;
    T* df = p.df + row * cols;
    A* dgate = p.dgate + picture * cols;
    for (int64_t c = 0; c < cols; ++c) dgate[c] += load(dy[c]) * load(f[c]);
    for (int64_t c = 0; c < cols; ++c) store(load(gate[c]) * load(dy[c]), df[c]);
  }
}

#define MM_INSTANTIATE(T)                                                                        \
  template void modulated_norm_forward<T>(const PictureRows&, const ModulatedNormForward<T>&);   \
  template void modulated_norm_backward<T>(const PictureRows&, const ModulatedNormBackward<T>&); \
  template void gated_add_forward<T>(const PictureRows&, const GatedAddForward<T>&);             \
  template void gated_add_backward<T>(const PictureRows&, const GatedAddBackward<T>&);
MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels
