#include "lib/model/segment_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "lib/base/error.h"
#include "lib/model/attention.h"
#include "lib/model/fused_attention.h"
#include "lib/model/rows.h"

namespace mm::model {
namespace {

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const std::vector<int64_t>& borders) {
  MM_CHECK(q.dim() == 3 && q.sizes() == k.sizes() && q.sizes() == v.sizes(),
           "q has {} rows, k {}, v {}", q.size(0), k.size(0), v.size(0));
  MM_CHECK(!borders.empty() && borders.back() == q.size(0), "borders end at {}, q has {} rows",
           borders.empty() ? -1 : borders.back(), q.size(0));
}

// Rows of each group of runs of equal length, one group after the other.
std::vector<int64_t> grouped_rows(const std::vector<LengthGroup>& groups,
                                  const std::vector<int64_t>& borders) {
  std::vector<int64_t> rows;
  for (const LengthGroup& group : groups) {
    for (const int64_t run : group.samples) {
      for (int64_t row = borders[run]; row < borders[run + 1]; ++row) rows.push_back(row);
    }
  }
  return rows;
}

std::vector<int64_t> inverse_of(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

at::Tensor attend_groups(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::vector<LengthGroup>& groups) {
  std::vector<at::Tensor> outputs;
  int64_t begin = 0;
  for (const LengthGroup& group : groups) {
    const auto runs = static_cast<int64_t>(group.samples.size());
    const auto batch = [&](const at::Tensor& x) {
      return x.narrow(0, begin, runs * group.padded_length)
          .view({runs, group.padded_length, x.size(1), x.size(2)});
    };
    outputs.push_back(full_attention(batch(q), batch(k), batch(v)).flatten(0, 1));
    begin += runs * group.padded_length;
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs);
}

}  // namespace

at::Tensor segment_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const std::vector<int64_t>& borders) {
  check_shapes(q, k, v, borders);
  if (q.size(0) == 0) return q.reshape({0, q.size(1) * q.size(2)});
  if (has_fused_attention(q)) return fused_attention(q, k, v, borders);
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < borders.size(); ++i) lengths.push_back(borders[i] - borders[i - 1]);
  const auto groups = group_by_length(lengths, /*max_padding_share=*/0);
  if (groups.size() == 1)
    return attend_groups(q.contiguous(), k.contiguous(), v.contiguous(), groups);
  const std::vector<int64_t> order = grouped_rows(groups, borders);
  const at::Tensor gather = at::tensor(order, at::kLong),
                   inverse = at::tensor(inverse_of(order), at::kLong);
  const at::Tensor out =
      attend_groups(permute_rows(q, gather, inverse), permute_rows(k, gather, inverse),
                    permute_rows(v, gather, inverse), groups);
  return permute_rows(out, inverse, gather);
}

at::Tensor segment_attention_reference(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, const std::vector<int64_t>& borders) {
  check_shapes(q, k, v, borders);
  std::vector<at::Tensor> outputs{q.narrow(0, 0, 0).reshape({0, q.size(1) * q.size(2)})};
  for (size_t i = 1; i < borders.size(); ++i) {
    const auto run = [&](const at::Tensor& x) {
      return x.narrow(0, borders[i - 1], borders[i] - borders[i - 1]).unsqueeze(0);
    };
    if (borders[i] > borders[i - 1])
      outputs.push_back(full_attention(run(q), run(k), run(v)).squeeze(0));
  }
  return at::cat(outputs);
}

}  // namespace mm::model
