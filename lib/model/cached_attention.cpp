#include "lib/model/cached_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "lib/base/error.h"
#include "lib/model/attention.h"

namespace mm::model {
namespace {

/// Rows of the packed new tokens in a padded [n, S] layout.
struct NewTokens {
  int64_t samples = 0, longest = 0;
  std::vector<int64_t> cu_seqlens;
  at::Tensor padded_row;  ///< [T] packed row -> i * S + j
  at::Tensor packed_row;  ///< [n * S] padded row -> packed row; padding repeats row 0 of the batch
};

NewTokens describe(const std::vector<int64_t>& cu_seqlens) {
  NewTokens out{.samples = static_cast<int64_t>(cu_seqlens.size()) - 1, .cu_seqlens = cu_seqlens};
  for (int64_t i = 0; i < out.samples; ++i)
    out.longest = std::max(out.longest, cu_seqlens[i + 1] - cu_seqlens[i]);
  std::vector<int64_t> padded, packed(out.samples * out.longest, 0);
  for (int64_t i = 0; i < out.samples; ++i) {
    for (int64_t row = cu_seqlens[i]; row < cu_seqlens[i + 1]; ++row) {
      const int64_t place = i * out.longest + row - cu_seqlens[i];
      padded.push_back(place);
      packed[place] = row;
    }
  }
  out.padded_row = at::tensor(padded, at::kLong);
  out.packed_row = at::tensor(packed, at::kLong);
  return out;
}

// [T, heads, D] -> [n, heads, S, D]
at::Tensor pad(const at::Tensor& x, const NewTokens& tokens) {
  return x.index_select(0, tokens.packed_row)
      .view({tokens.samples, tokens.longest, x.size(1), x.size(2)})
      .transpose(1, 2);
}

// [n, heads, S, D] -> [T, heads * D]
at::Tensor unpad(const at::Tensor& x, const NewTokens& tokens) {
  const at::Tensor rows =
      x.transpose(1, 2).reshape({tokens.samples * tokens.longest, x.size(1) * x.size(3)});
  return rows.index_select(0, tokens.padded_row);
}

void store(KvCache::Layer& layer, const at::Tensor& k, const at::Tensor& v, const NewTokens& tokens,
           const KvCache& cache) {
  if (!layer.k.defined()) {
    const std::vector<int64_t> shape{tokens.samples, k.size(1), cache.capacity, k.size(2)};
    layer.k = at::zeros(shape, k.options());
    layer.v = at::zeros(shape, v.options());
  }
  for (int64_t i = 0; i < tokens.samples; ++i) {
    const int64_t begin = tokens.cu_seqlens[i], count = tokens.cu_seqlens[i + 1] - begin;
    MM_CHECK(cache.lengths[i] + count <= cache.capacity,
             "sample {} needs {} places, the cache has {}", i, cache.lengths[i] + count,
             cache.capacity);
    const auto put = [&](const at::Tensor& to, const at::Tensor& from) {
      to.select(0, i)
          .narrow(1, cache.lengths[i], count)
          .copy_(from.narrow(0, begin, count).transpose(0, 1));
    };
    put(layer.k, k);
    put(layer.v, v);
  }
}

// Query j of sample i sees columns 0 .. lengths[i] + j, the last `window` of them: [n, 1, S,
// columns] bool.
at::Tensor causal_mask(const NewTokens& tokens, const std::vector<int64_t>& lengths,
                       int64_t columns, int64_t window) {
  const at::Tensor start = at::tensor(lengths, at::kLong).view({-1, 1, 1, 1});
  const at::Tensor row = at::arange(tokens.longest, at::kLong).view({1, 1, -1, 1});
  const at::Tensor column = at::arange(columns, at::kLong).view({1, 1, 1, -1});
  const at::Tensor before = column <= start + row;
  return window > 0 ? before.logical_and(column > start + row - window) : before;
}

at::Tensor repeat_heads(const at::Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

// q [n, H, S, D] over k, v [n or 1, G, L, D]: output and log-sum-exp of the scores [n, H, S].
struct Partial {
  at::Tensor out, log_sum;
};

Partial attend_part(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
  auto [out, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
      q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)), /*dropout_p=*/0.0, causal);
  return {out, log_sum};
}

// Attention over a shared prefix and over the new tokens, joined by their log-sum-exps: the prefix
// is never copied per sample.
at::Tensor attend_shared(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const KvCache& prefix, int64_t layer) {
  const int64_t n = q.size(0), heads = q.size(1), s = q.size(2), d = q.size(3);
  const auto known = [&](const at::Tensor& x) {
    return x.narrow(0, 0, 1).narrow(2, 0, prefix.lengths[0]);
  };
  const at::Tensor flat = q.transpose(0, 1).reshape({1, heads, n * s, d});
  const KvCache::Layer& cached = prefix.layers[layer];
  Partial far = attend_part(flat, known(cached.k), known(cached.v), /*causal=*/false);
  far.out = far.out.view({heads, n, s, d}).transpose(0, 1);
  far.log_sum = far.log_sum.view({heads, n, s}).transpose(0, 1);
  const Partial near = attend_part(q, k, v, /*causal=*/true);
  const at::Tensor weight =
      at::sigmoid(far.log_sum - near.log_sum).unsqueeze(-1).to(q.scalar_type());
  return far.out * weight + near.out * (1 - weight);
}

}  // namespace

at::Tensor cached_attention(const QueryKeyValue& fresh, const std::vector<int64_t>& cu_seqlens,
                            KvCache& cache, const CachedLayer& at) {
  const auto& [q, k, v] = fresh;
  const auto [layer, window] = at;
  if (q.size(0) == 0) return q.reshape({0, q.size(1) * q.size(2)});
  const NewTokens tokens = describe(cu_seqlens);
  if (cache.shared_prefix != nullptr) {
    MM_CHECK(window == 0 || cache.shared_prefix->lengths[0] + tokens.longest <= window,
             "a shared prefix of {} and {} new tokens pass the window of {}",
             cache.shared_prefix->lengths[0], tokens.longest, window);
    return unpad(
        attend_shared(pad(q, tokens), pad(k, tokens), pad(v, tokens), *cache.shared_prefix, layer),
        tokens);
  }
  MM_CHECK(static_cast<int64_t>(cache.lengths.size()) == tokens.samples,
           "{} samples for a cache of {}", tokens.samples, cache.lengths.size());
  if (layer >= static_cast<int64_t>(cache.layers.size())) cache.layers.resize(layer + 1);
  store(cache.layers[layer], k, v, tokens, cache);
  const bool empty = std::ranges::all_of(cache.lengths, [](int64_t n) { return n == 0; });
  if (empty) return packed_attention(q, k, v, cu_seqlens, window);
  const int64_t columns = *std::ranges::max_element(cache.lengths) + tokens.longest;
  const int64_t used = std::min(columns, cache.capacity);
  const auto seen = [&](const at::Tensor& x) {
    return repeat_heads(x.narrow(2, 0, used), q.size(1));
  };
  const at::Tensor out = at::scaled_dot_product_attention(
      pad(q, tokens), seen(cache.layers[layer].k), seen(cache.layers[layer].v),
      causal_mask(tokens, cache.lengths, used, window));
  return unpad(out, tokens);
}

}  // namespace mm::model
