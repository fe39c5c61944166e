#include "lib/model/decoder_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/eager.h"
#include "lib/model/generate.h"
#include "lib/model/patch_layout.h"

namespace mm::model {
namespace {

int64_t longest_sample(const Batch& batch) {
  int64_t longest = 0;
  for (size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
    const int64_t length = batch.cu_seqlens[i] - batch.cu_seqlens[i - 1];
    MM_CHECK(length > 0, "sample {} of the prompts is empty", i - 1);
    longest = std::max(longest, length);
  }
  return longest;
}

}  // namespace

DecoderPass::DecoderPass(const Model& model, const ParamView& params, const Batch& prompts,
                         int64_t max_new_tokens)
    : model_(model),
      params_(params),
      prompts_(prompts),
      cache_(static_cast<int64_t>(prompts.cu_seqlens.size()) - 1,
             longest_sample(prompts) + max_new_tokens) {}

at::Tensor DecoderPass::run(const Batch& batch) {
  const SlotValues slots = eager_forward(model_, params_, batch, &cache_);
  cache_.advance(batch.cu_seqlens);
  return slots[model_.logits_slot];
}

at::Tensor DecoderPass::start() {
  at::Tensor logits = run(prompts_);
  positions_ = next_positions(prompts_);  // pictures may have shortened them
  return logits;
}

at::Tensor DecoderPass::next(const std::vector<int64_t>& tokens) {
  std::vector<std::vector<int64_t>> rows;
  for (const int64_t token : tokens) rows.push_back({token});
  at::Tensor logits = run(continuation_batch(rows, positions_, prompts_));
  for (int64_t& position : positions_) ++position;
  return logits;
}

void DecoderPass::select(const std::vector<int64_t>& rows) {
  const at::Tensor index = at::tensor(rows, at::kLong);
  for (KvCache::Layer& layer : cache_.layers) {
    layer.k = layer.k.index_select(0, index);
    layer.v = layer.v.index_select(0, index);
  }
  std::vector<int64_t> lengths, positions;
  for (const int64_t row : rows) {
    lengths.push_back(cache_.lengths[row]);
    positions.push_back(positions_[row]);
  }
  cache_.lengths = std::move(lengths);
  positions_ = std::move(positions);
}

}  // namespace mm::model
