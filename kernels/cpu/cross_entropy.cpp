#include "kernels/cross_entropy.h"

namespace mm::kernels {

template <typename T>
MM_CLONES void cross_entropy_rows(Shape shape, const CrossEntropyRows<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* z = p.logits + row * cols;
    A lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = load(z[0]);
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const A v = load(z[c + l]);
        lanes[l] = v > lanes[l] ? v : lanes[l];
      }
    }
    A highest = lanes[0];
    for (int l = 1; l < kLanes; ++l) highest = lanes[l] > highest ? lanes[l] : highest;
    for (int64_t c = whole; c < cols; ++c) highest = load(z[c]) > highest ? load(z[c]) : highest;
    for (int l = 0; l < kLanes; ++l) lanes[l] = 0;
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += odds_of(load(z[c + l]), highest);
    }
    for (int64_t c = whole; c < cols; ++c) lanes[c - whole] += odds_of(load(z[c]), highest);
    const A total = sum_lanes(lanes), weight = p.weights == nullptr ? A(1) : p.weights[row];
    const int64_t target = p.targets[row];
    const A target_logit = load(z[target]);
    p.loss[row] = std::log(total) + highest - target_logit;
    if (p.d_logits == nullptr) continue;
    T* d = p.d_logits + row * cols;
    const A share = weight / total;
    for (int64_t c = 0; c < cols; ++c) store(odds_of(load(z[c]), highest) * share, d[c]);
    store(odds_of(target_logit, highest) * share - weight, d[target]);
  }
}

template void cross_entropy_rows<double>(Shape, const CrossEntropyRows<double>&);
template void cross_entropy_rows<float>(Shape, const CrossEntropyRows<float>&);
template void cross_entropy_rows<Bf16>(Shape, const CrossEntropyRows<Bf16>&);

}  // namespace mm::kernels
