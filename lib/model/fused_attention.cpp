#include "lib/model/fused_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "kernels/packed_attention.h"
#include "lib/base/error.h"
#include "lib/model/products.h"
#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using kernels::PackedAttentionShape;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

PackedAttentionShape shape_of(const at::Tensor& q, const at::Tensor& k,
                              const std::vector<int64_t>& borders, const FusedAttention& rule) {
  return {.tokens = q.size(0),
          .heads = q.size(1),
          .kv_heads = k.size(1),
          .head_size = q.size(2),
          .samples = static_cast<int64_t>(borders.size()) - 1,
          .window = rule.window,
          .causal = rule.causal,
          .scale = 1 / std::sqrt(static_cast<double>(q.size(2)))};
}

void check_operands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const std::vector<int64_t>& borders) {
  MM_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
           "q is {}, k {}, v {}", c10::toString(q.scalar_type()), c10::toString(k.scalar_type()),
           c10::toString(v.scalar_type()));
  MM_CHECK(
      q.dim() == 3 && k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(2) == k.size(2),
      "q has {} rows, k {}, v {}", q.size(0), k.size(0), v.size(0));
  MM_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, "{} query heads on {} key heads", q.size(1),
           k.size(1));
  MM_CHECK(borders.size() >= 2 && borders.front() == 0 && borders.back() == q.size(0) &&
               std::ranges::is_sorted(borders),
           "{} borders that do not lead from 0 to {}", borders.size(), q.size(0));
}

// f(pieces), in parallel where it pays: a thread takes some 2^18 multiply-adds at least.
template <typename F>
void for_pieces(const PackedAttentionShape& s, F&& f) {
  const int64_t pieces = kernels::piece_count(s);
  const int64_t row_cost = s.head_size * (s.heads / s.kv_heads) * (s.tokens / s.samples + 1);
  const int64_t piece_cost = std::max<int64_t>(1, row_cost * (s.tokens / s.samples));
  at::parallel_for(0, pieces, std::max<int64_t>(1, (1 << 18) / piece_cost),
                   [&](int64_t begin, int64_t end) {
                     f(kernels::Pieces{begin, end});
                   });
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Variable forward(AutogradContext* context, const Variable& q_in, const Variable& k_in,
                          const Variable& v_in, const std::vector<int64_t>& borders,
                          const FusedAttention& rule) {
    const at::Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
    const PackedAttentionShape shape = shape_of(q, k, borders, rule);
    const at::Tensor y = at::empty_like(q),
                     lse = at::empty({q.size(0), q.size(1)}, q.options().dtype(accumulate_type(q)));
    for_storage_of(q, [&]<typename T>() {
      for_pieces(shape, [&](kernels::Pieces pieces) {
        kernels::packed_attention_forward<T>(shape,
                                             {.q = in<T>(q),
                                              .k = in<T>(k),
                                              .v = in<T>(v),
                                              .cu_seqlens = borders.data(),
                                              .out = out<T>(y),
                                              .lse = out<kernels::Acc<T>>(lse)},
                                             pieces);
      });
    });
    context->save_for_backward({q, k, v, y, lse});
    context->saved_data["borders"] = borders;
    context->saved_data["causal"] = rule.causal;
    context->saved_data["window"] = rule.window;
    return y.view({q.size(0), q.size(1) * q.size(2)});
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &y = saved[3], &lse = saved[4];
    const std::vector<int64_t> borders = context->saved_data["borders"].toIntVector();
    const PackedAttentionShape shape =
        shape_of(q, k, borders,
                 {context->saved_data["causal"].toBool(), context->saved_data["window"].toInt()});
    const at::Tensor dy = gradients[0].contiguous(), delta = at::empty_like(lse);
    const at::Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
    for_storage_of(q, [&]<typename T>() {
      using A = kernels::Acc<T>;
      for_pieces(shape, [&](kernels::Pieces pieces) {
        kernels::packed_attention_backward<T>(shape,
                                              {.q = in<T>(q),
                                               .k = in<T>(k),
                                               .v = in<T>(v),
                                               .out = in<T>(y),
                                               .d_out = in<T>(dy),
                                               .cu_seqlens = borders.data(),
                                               .lse = in<A>(lse),
                                               .delta = out<A>(delta),
                                               .dq = out<T>(dq),
                                               .dk = out<T>(dk),
                                               .dv = out<T>(dv)},
                                              pieces);
      });
    });
    return {dq, dk, dv, Variable(), Variable()};
  }
};

}  // namespace

bool has_fused_attention(const at::Tensor& q) {
  const auto type = q.scalar_type();
  if (!q.device().is_cpu()) return false;
  return type == at::kDouble || type == at::kFloat || widens_products(type);
}

at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::vector<int64_t>& borders, const FusedAttention& rule) {
  check_operands(q, k, v, borders);
  if (q.scalar_type() == at::kHalf) {
    return AttentionFunction::apply(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), borders,
                                    rule)
        .to(at::kHalf);
  }
  return AttentionFunction::apply(q, k, v, borders, rule);
}

}  // namespace mm::model
