#include "lib/model/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"
#include "lib/model/attention_product.h"
#include "lib/model/fused_attention.h"
#include "lib/model/rows.h"

namespace mm::model {
namespace {

// Query i sees keys i - window + 1 to i: [S, S] bool.
at::Tensor band(int64_t length, int64_t window) {
  const at::Tensor row = at::arange(length, at::kLong).unsqueeze(1),
                   column = at::arange(length, at::kLong).unsqueeze(0);
  return (column <= row).logical_and(column > row - window);
}

// q, k, v [n, S, heads, D] -> [n * S, H * D].
at::Tensor batched_causal(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          int64_t window) {
  AttentionRule rule{.causal = true};
  if (window > 0 && q.size(1) > window) rule = {.causal = false, .mask = band(q.size(1), window)};
  const at::Tensor out =
      attention_product(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), rule);
  return out.transpose(1, 2).reshape({q.size(0) * q.size(1), q.size(2) * q.size(3)});
}

std::vector<int64_t> lengths_of(const std::vector<int64_t>& cu_seqlens) {
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < cu_seqlens.size(); ++i)
    lengths.push_back(cu_seqlens[i] - cu_seqlens[i - 1]);
  return lengths;
}

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const std::vector<int64_t>& cu_seqlens) {
  MM_CHECK(
      q.dim() == 3 && k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(2) == k.size(2),
      "q has {} rows, k {}, v {}", q.size(0), k.size(0), v.size(0));
  MM_CHECK(!cu_seqlens.empty() && cu_seqlens.back() == q.size(0),
           "cu_seqlens end at {}, q has {} rows", cu_seqlens.empty() ? -1 : cu_seqlens.back(),
           q.size(0));
  MM_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, "{} query heads on {} key heads", q.size(1),
           k.size(1));
}

/// Row numbers of the padded layout [groups of n x S] and the way back.
struct PaddedLayout {
  std::vector<int64_t> gather;  ///< padded row -> packed row; padding repeats the sample's last row
  std::vector<int64_t> inverse;  ///< packed row -> padded row
};

PaddedLayout lay_out(const std::vector<LengthGroup>& groups,
                     const std::vector<int64_t>& cu_seqlens) {
  PaddedLayout layout;
  layout.inverse.resize(cu_seqlens.back());
  for (const LengthGroup& group : groups) {
    for (int64_t sample : group.samples) {
      const int64_t begin = cu_seqlens[sample], end = cu_seqlens[sample + 1];
      for (int64_t j = 0; j < group.padded_length; ++j) {
        if (begin + j < end) layout.inverse[begin + j] = static_cast<int64_t>(layout.gather.size());
        layout.gather.push_back(std::min(begin + j, end - 1));
      }
    }
  }
  return layout;
}

at::Tensor to_tensor(const std::vector<int64_t>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong));
}

bool already_packed(const std::vector<LengthGroup>& groups, const std::vector<int64_t>& lengths) {
  if (groups.size() != 1 || groups[0].samples.size() != lengths.size()) return false;
  return std::ranges::all_of(lengths, [&](int64_t n) { return n == groups[0].padded_length; });
}

// Rows of `x` [rows, heads, D] from `begin` on as [n, S, heads, D].
at::Tensor group_view(const at::Tensor& x, int64_t begin, const LengthGroup& group) {
  const auto n = static_cast<int64_t>(group.samples.size());
  return x.narrow(0, begin, n * group.padded_length)
      .view({n, group.padded_length, x.size(1), x.size(2)});
}

at::Tensor attend_groups(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::vector<LengthGroup>& groups, int64_t window) {
  std::vector<at::Tensor> outputs;
  int64_t begin = 0;
  for (const LengthGroup& group : groups) {
    outputs.push_back(batched_causal(group_view(q, begin, group), group_view(k, begin, group),
                                     group_view(v, begin, group), window));
    begin += static_cast<int64_t>(group.samples.size()) * group.padded_length;
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs);
}

}  // namespace

std::vector<LengthGroup> group_by_length(std::span<const int64_t> lengths,
                                         double max_padding_share) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  std::vector<LengthGroup> groups;
  int64_t real = 0;
  for (int64_t sample : order) {
    const int64_t length = lengths[sample];
    if (length == 0) break;
    if (!groups.empty()) {
      LengthGroup& group = groups.back();
      const auto rows = static_cast<double>((group.samples.size() + 1) * group.padded_length);
      if (rows - static_cast<double>(real + length) <= max_padding_share * rows) {
        group.samples.push_back(sample);
        real += length;
        continue;
      }
    }
    groups.push_back({{sample}, length});
    real = length;
  }
  return groups;
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& cu_seqlens, int64_t window) {
  check_shapes(q, k, v, cu_seqlens);
  if (q.size(0) == 0) return q.reshape({0, q.size(1) * q.size(2)});
  if (has_fused_attention(q))
    return fused_attention(q, k, v, cu_seqlens, {.causal = true, .window = window});
  return grouped_attention(q, k, v, cu_seqlens, window);
}

at::Tensor grouped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const std::vector<int64_t>& cu_seqlens, int64_t window) {
  check_shapes(q, k, v, cu_seqlens);
  const auto lengths = lengths_of(cu_seqlens);
  const auto groups = group_by_length(lengths, kMaxPaddingShare);
  if (already_packed(groups, lengths)) return attend_groups(q, k, v, groups, window);
  const PaddedLayout layout = lay_out(groups, cu_seqlens);
  const at::Tensor gather = to_tensor(layout.gather), inverse = to_tensor(layout.inverse);
  const at::Tensor padded =
      attend_groups(permute_rows(q, gather, inverse), permute_rows(k, gather, inverse),
                    permute_rows(v, gather, inverse), groups, window);
  return unpermute_rows(padded, gather, inverse);
}

at::Tensor packed_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const std::vector<int64_t>& cu_seqlens, int64_t window) {
  check_shapes(q, k, v, cu_seqlens);
  std::vector<at::Tensor> outputs{q.narrow(0, 0, 0).reshape({0, q.size(1) * q.size(2)})};
  const auto lengths = lengths_of(cu_seqlens);
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) continue;
    const auto rows = [&](const at::Tensor& x) {
      return x.narrow(0, cu_seqlens[i], lengths[i]).unsqueeze(0);
    };
    outputs.push_back(batched_causal(rows(q), rows(k), rows(v), window));
  }
  return at::cat(outputs);
}

at::Tensor full_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const std::vector<int64_t> shape{q.size(0), q.size(1), q.size(2) * q.size(3)};
  if (q.size(0) == 0) return q.reshape(shape);
  if (has_fused_attention(q)) {
    std::vector<int64_t> borders;
    for (int64_t picture = 0; picture <= q.size(0); ++picture)
      borders.push_back(picture * q.size(1));
    return fused_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), borders).view(shape);
  }
  const at::Tensor out = attention_product(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
  return out.transpose(1, 2).reshape(shape);
}

}  // namespace mm::model
