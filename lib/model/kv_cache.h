#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace mm::model {

/// Keys and values of earlier tokens, for generation and scoring (no gradients). n samples, G
/// key/value heads, D head size. One thread.
struct KvCache {
  /// Which rows the head turns into logits when the cache is in use.
  enum class Logits { kLastOfEachSample, kAll };

  struct Layer {
    at::Tensor k,
        v;  ///< [n, G, capacity, D], written from the left; undefined until the layer has run once
  };

  std::vector<Layer> layers;     ///< grows as layers run
  std::vector<int64_t> lengths;  ///< [n] tokens that stand in the cache, the same in all layers
  int64_t capacity = 0;          ///< tokens that a sample can hold
  Logits logits = Logits::kLastOfEachSample;

  /// When set, nothing is stored: any number of samples continue the one sample of `shared_prefix`,
  /// which is only read, and of the new tokens each sees its own sample's. Must outlive this cache.
  const KvCache* shared_prefix = nullptr;

  KvCache(int64_t samples, int64_t capacity_tokens)
      : lengths(samples, 0), capacity(capacity_tokens) {}
  explicit KvCache(const KvCache* prefix) : logits(Logits::kAll), shared_prefix(prefix) {}

  /// After all layers have run on new tokens with these borders [n + 1].
  void advance(const std::vector<int64_t>& cu_seqlens) {
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] += cu_seqlens[i + 1] - cu_seqlens[i];
  }
};

}  // namespace mm::model
