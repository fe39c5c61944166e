#pragma once
#include <cstdint>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/token_choice.h"

namespace mm::model {

struct GenerateOptions {
  int64_t max_new_tokens = 32;
  std::vector<int64_t> stop_tokens;    ///< end a sample; not part of the result
  std::vector<int64_t> banned_tokens;  ///< never chosen: the image token, padding
  Sampling sampling = {};
  uint64_t seed = 0;  ///< of random draws
  /// Whose draws sample i has: token j of it depends on (seed, sample_ids[i], j) alone, whatever
  /// else is in the batch. Empty: 0, 1, 2...
  std::vector<uint64_t> sample_ids;
  /// Above 1: beam search of this width, without random draws: of 2 * beams best continuations the
  /// first `beams` may end, the others go on; the best sum of log-probabilities / length^
  /// length_penalty (the stop token counts in both) wins. Hugging Face's rules.
  int64_t beams = 1;
  double length_penalty = 1;
};

/// Continues each sample of `prompts` (with its pictures) until a stop token or max_new_tokens. The
/// prompt runs once; each further token costs one pass over the samples that still grow (times
/// beams) against cached keys and values. A result does not depend on what else is in the batch, up
/// to rounding. Returns the new ids of each sample. One thread; no gradients.
std::vector<std::vector<int64_t>> generate(const Model& model, const ParamView& params,
                                           const Batch& prompts, const GenerateOptions& options);

/// The same, for callers that mean the most likely tokens: options.sampling and beams at their
/// defaults.
inline std::vector<std::vector<int64_t>> generate_greedy(const Model& model,
                                                         const ParamView& params,
                                                         const Batch& prompts,
                                                         const GenerateOptions& options) {
  return generate(model, params, prompts, options);
}

/// A text-only micro-batch for tokens that follow earlier ones: `tokens[i]` of sample i, the first
/// of them at position `start[i]`. Targets are none; pictures none, in the dtype and size of
/// `like`.
Batch continuation_batch(const std::vector<std::vector<int64_t>>& tokens,
                         const std::vector<int64_t>& start, const Batch& like);

}  // namespace mm::model
