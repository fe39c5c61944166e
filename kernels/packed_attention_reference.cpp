#include <algorithm>
#include <vector>

#include "kernels/packed_attention.h"

namespace mm::kernels {
namespace {

using Pairs = PackedAttentionShape;

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

void add_scaled(double factor, const double* from, double* to, int64_t n) {
  for (int64_t d = 0; d < n; ++d) to[d] += factor * from[d];
}

bool sees(const Pairs& s, int64_t i, int64_t j) {
  return (!s.causal || j <= i) && (s.window <= 0 || j > i - s.window);
}

// Calls f(i, j, head, offset of query row i, offset of key row j) for each pair of one sample.
template <typename F>
void for_pairs(const Pairs& s, const int64_t* cu_seqlens, F&& f) {
  for (int64_t sample = 0; sample < s.samples; ++sample) {
    const int64_t begin = cu_seqlens[sample], end = cu_seqlens[sample + 1];
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t kv = h / (s.heads / s.kv_heads);
        for (int64_t j = begin; j < end; ++j) {
          if (!sees(s, i, j)) continue;
          f(i * s.heads + h, (i * s.heads + h) * s.head_size, (j * s.kv_heads + kv) * s.head_size);
        }
      }
    }
  }
}

}  // namespace

void packed_attention_forward_reference(const Pairs& s, const PackedAttentionForward<double>& p) {
  const int64_t rows = s.tokens * s.heads, D = s.head_size;
  std::vector<double> highest(rows, -1e300), total(rows, 0);
  const auto score = [&](int64_t qi, int64_t kj) { return s.scale * dot(p.q + qi, p.k + kj, D); };
  for_pairs(s, p.cu_seqlens, [&](int64_t row, int64_t qi, int64_t kj) {
    highest[row] = std::max(highest[row], score(qi, kj));
  });
  for_pairs(s, p.cu_seqlens, [&](int64_t row, int64_t qi, int64_t kj) {
    total[row] += std::exp(score(qi, kj) - highest[row]);
  });
  for (int64_t row = 0; row < rows; ++row) p.lse[row] = highest[row] + std::log(total[row]);
  std::fill(p.out, p.out + rows * D, 0.0);
  for_pairs(s, p.cu_seqlens, [&](int64_t row, int64_t qi, int64_t kj) {
    add_scaled(std::exp(score(qi, kj) - p.lse[row]), p.v + kj, p.out + qi, D);
  });
}

void packed_attention_backward_reference(const Pairs& s, const PackedAttentionBackward<double>& p) {
  const int64_t D = s.head_size;
  std::fill(p.dq, p.dq + s.tokens * s.heads * D, 0.0);
  std::fill(p.dk, p.dk + s.tokens * s.kv_heads * D, 0.0);
  std::fill(p.dv, p.dv + s.tokens * s.kv_heads * D, 0.0);
  for_pairs(s, p.cu_seqlens, [&](int64_t row, int64_t qi, int64_t kj) {
    const double weight = std::exp(s.scale * dot(p.q + qi, p.k + kj, D) - p.lse[row]);
    const double delta = dot(p.d_out + qi, p.out + qi, D);
    const double dz = weight * (dot(p.d_out + qi, p.v + kj, D) - delta);
    add_scaled(s.scale * dz, p.k + kj, p.dq + qi, D);
    add_scaled(s.scale * dz, p.q + qi, p.dk + kj, D);
    add_scaled(weight, p.d_out + qi, p.dv + kj, D);
  });
}

}  // namespace mm::kernels
