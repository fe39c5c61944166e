#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mm::model {

/// How a next token is drawn from a row of logits.
struct Sampling {
  double temperature = 0;  ///< 0: the most likely token, the lowest id on a tie
  double top_p = 1;   ///< of the most likely tokens, so many that their probabilities reach this
  int64_t top_k = 0;  ///< at most so many of the most likely; 0: no limit
};

/// Softmax of logits / temperature over the tokens that top_k, then top_p leave (as Hugging Face
/// applies them), and the one at `uniform` in [0, 1) along them, most likely first, the lower id on
/// a tie. Minus infinity is never chosen. O(vocabulary log vocabulary) when sampling, else O(
/// vocabulary). `logits` must hold a finite value (InternalError).
int64_t choose_token(std::span<const float> logits, const Sampling& sampling, double uniform);

/// The `count` most likely tokens, best first, the lower id on a tie.
std::vector<int64_t> best_tokens(std::span<const double> scores, int64_t count);

}  // namespace mm::model
