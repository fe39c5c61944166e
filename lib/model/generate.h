#pragma once
#include <cstdint>
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

struct GenerateOptions {
  int64_t max_new_tokens = 32;
  std::vector<int64_t> stop_tokens;    ///< end a sample; not part of the result
  std::vector<int64_t> banned_tokens;  ///< never chosen: the image token, padding
};

/// Greedy generation: each sample of `prompts` (with its pictures) is continued by the most likely
/// token, the lowest id on a tie, until a stop token or max_new_tokens. The prompt runs once; each
/// further token costs one pass over n rows against cached keys and values. The result does not
/// depend on what else is in the batch, up to rounding. Returns the new ids of each sample. One
/// thread; no gradients.
std::vector<std::vector<int64_t>> generate_greedy(const Model& model, const ParamView& params,
                                                  const Batch& prompts,
                                                  const GenerateOptions& options);

/// A text-only micro-batch for tokens that follow earlier ones: `tokens[i]` of sample i, the first
/// of them at position `start[i]`. Targets are none; pictures none, in the dtype and size of
/// `like`.
Batch continuation_batch(const std::vector<std::vector<int64_t>>& tokens,
                         const std::vector<int64_t>& start, const Batch& like);

}  // namespace mm::model
