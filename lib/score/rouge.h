#pragma once
#include <span>
#include <vector>

#include "lib/score/ngrams.h"

namespace mm::score {

struct RougeL {
  double mean = 0;
  std::vector<double> per_picture;
};

/// F of the longest common subsequence (Lin 2004, section 3.1, with beta = 1.2 as COCO's tools have
/// it): best precision and best recall over the references, each on its own. O(words^2) a pair.
/// Throws as check_cases.
RougeL rouge_l(std::span<const CaptionCase> cases);

}  // namespace mm::score
