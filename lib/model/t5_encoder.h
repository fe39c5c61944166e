#pragma once
#include <ATen/core/Tensor.h>

#include "lib/model/config_section.h"
#include "lib/model/text_encoder.h"

namespace mm::model {

/// T5's encoder, version 1.1 (gated tanh-GELU): RMSNorm before each half, scores without a scale,
/// relative positions whose table lies in block 0 and serves all blocks. The pooled vector is the
/// mean over a caption's tokens. In fp16 products overflow: what the feed-forward layer makes, its
/// second matrix and the sums along the layers are fp32 there, whatever the weights are in; hidden
/// states then come out in fp32.
TextEncoder declare_t5_encoder(Model& model, const Section& config, const std::string& prefix);

/// Bucket of each relative position key - query, for attention in both directions (Raffel et al.
/// 2020): half of the buckets are for positions behind, in each half the first half are single
/// positions, the others grow by powers up to `max_distance`. int64 in, int64 out, same shape.
at::Tensor t5_position_buckets(const at::Tensor& relative, int64_t buckets, int64_t max_distance);

}  // namespace mm::model
