#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace mm::model {

/// Keys and values of earlier tokens, for generation and scoring (no gradients). Layer l keeps k, v
/// [n, G, capacity, D], written from the left; all n samples advance by their own lengths. One
/// thread.
struct KvCache {
  /// Which rows the head turns into logits when the cache is in use.
  enum class Logits { kLastOfEachSample, kAll };

  struct Layer {
    at::Tensor k, v;  ///< undefined until the layer has run once
  };

  std::vector<Layer> layers;
  std::vector<int64_t> lengths;  ///< [n] tokens that stand in the cache, same for all layers;
                                 ///< advanced by the driver after a forward
  int64_t capacity = 0;          ///< tokens a sample can hold
  Logits logits = Logits::kLastOfEachSample;

  /// When set, this cache only reads: the n samples all continue the one sample of `prefix` (n =
  /// any, prefix has 1), and only their own new tokens attend to each other. Nothing is stored.
  const KvCache* shared_prefix = nullptr;

  KvCache(int64_t layer_count, int64_t samples, int64_t capacity_tokens)
      : layers(layer_count), lengths(samples, 0), capacity(capacity_tokens) {}

  /// After all layers have run on new tokens of these counts.
  void advance(const std::vector<int64_t>& cu_seqlens) {
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] += cu_seqlens[i + 1] - cu_seqlens[i];
  }
};

}  // namespace mm::model
