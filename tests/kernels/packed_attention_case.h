#pragma once
#include <functional>

#include "kernels/packed_attention.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename T>
struct PackedAttentionTwin {
  std::function<void(const PackedAttentionShape&, const PackedAttentionForward<T>&)> forward;
  std::function<void(const PackedAttentionShape&, const PackedAttentionBackward<T>&)> backward;
};

template <typename T>
PackedAttentionTwin<T> cpu_packed_attention() {
  return {[](const PackedAttentionShape& s, const PackedAttentionForward<T>& p) {
            packed_attention_forward<T>(s, p, {0, piece_count(s)});
          },
          [](const PackedAttentionShape& s, const PackedAttentionBackward<T>& p) {
            packed_attention_backward<T>(s, p, {0, piece_count(s)});
          }};
}

/// Shape of samples with these borders.
inline PackedAttentionShape attention_shape(const std::vector<int64_t>& cu_seqlens) {
  PackedAttentionShape s{.tokens = cu_seqlens.back(), .heads = 4, .kv_heads = 2, .head_size = 40};
  s.samples = static_cast<int64_t>(cu_seqlens.size()) - 1;
  s.scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  return s;
}

template <typename T>
double packed_attention_error(const PackedAttentionTwin<T>& twin, const PackedAttentionShape& s,
                              const std::vector<int64_t>& cu_seqlens) {
  const int64_t nq = s.tokens * s.heads * s.head_size, nk = s.tokens * s.kv_heads * s.head_size;
  const auto q = draw<T>(nq, 1), k = draw<T>(nk, 2), v = draw<T>(nk, 3), d_out = draw<T>(nq, 4);
  std::vector<double> out(nq), lse(s.tokens * s.heads), delta(lse.size()), dq(nq), dk(nk), dv(nk);
  packed_attention_forward_reference(
      s, {q.data(), k.data(), v.data(), cu_seqlens.data(), out.data(), lse.data()});
  const auto tq = rounded<T>(q), tk = rounded<T>(k), tv = rounded<T>(v), td_out = rounded<T>(d_out);
  std::vector<T> tout(nq), tdq(nq), tdk(nk), tdv(nk);
  std::vector<Acc<T>> tlse(lse.size()), tdelta(lse.size());
  twin.forward(s, {tq.data(), tk.data(), tv.data(), cu_seqlens.data(), tout.data(), tlse.data()});
  packed_attention_backward_reference(
      s, {q.data(), k.data(), v.data(), out.data(), d_out.data(), cu_seqlens.data(), lse.data(),
          delta.data(), dq.data(), dk.data(), dv.data()});
  twin.backward(s, {tq.data(), tk.data(), tv.data(), tout.data(), td_out.data(), cu_seqlens.data(),
                    tlse.data(), tdelta.data(), tdq.data(), tdk.data(), tdv.data()});
  return std::max({worst_error(tout, out), worst_error(tlse, lse), worst_error(tdq, dq),
                   worst_error(tdk, dk), worst_error(tdv, dv)});
}

}  // namespace mm::kernels::test
