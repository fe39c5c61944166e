#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

/// How likely a continuation is.
struct ContinuationScore {
  double log_likelihood = 0;  ///< sum over its tokens, natural logarithm
  int64_t tokens = 0;
  /// Per token, so that long names are not at a disadvantage.
  double per_token() const { return log_likelihood / static_cast<double>(tokens); }
};

/// Log-likelihoods of many continuations (e.g. all names that could be meant) of one prompt (one
/// sample, with its pictures). The prompt runs once and its keys and values are shared, never
/// copied; continuations run packed, `max_tokens_at_once` tokens at a time. Continuations must not
/// be empty (InternalError). 150 names of 5 tokens cost about one pack of 750 tokens. One thread;
/// no gradients.
std::vector<ContinuationScore> score_continuations(
    const Model& model, const ParamView& params, const Batch& prompt,
    std::span<const std::vector<int64_t>> continuations, int64_t max_tokens_at_once = 4096);

}  // namespace mm::model
