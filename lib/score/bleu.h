#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "lib/score/ngrams.h"

namespace mm::score {

/// Corpus BLEU (Papineni et al. 2002) and what it is made of.
struct Bleu {
  std::array<double, kMaxOrder> score{};  ///< BLEU-1 to BLEU-4, fractions
  std::array<int64_t, kMaxOrder> hits{}, totals{};
  int64_t candidate_length = 0, reference_length = 0;  ///< words
  double brevity_penalty = 1;
};

/// Clipped n-gram precision, geometric mean with equal weights, brevity penalty; no smoothing, so
/// an order without a hit gives 0. A candidate's reference length is that of the nearest reference,
/// the shorter on a tie. Throws as check_cases.
Bleu bleu(std::span<const CaptionCase> cases);

}  // namespace mm::score
