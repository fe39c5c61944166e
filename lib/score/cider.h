#pragma once
#include <span>
#include <vector>

#include "lib/score/ngrams.h"

namespace mm::score {

enum class CiderKind {
  kCider,   ///< mean cosine of the TF-IDF vectors
  kCiderD,  ///< weights clipped to the reference's and a Gaussian penalty on lengths; what COCO's
            ///< tools call CIDEr
};

struct Cider {
  double mean = 0;
  std::vector<double> per_picture;
};

/// Agreement of TF-IDF weighted n-grams, n = 1 to 4 (Vedantam et al. 2015, equations 1 to 5; D:
/// section 6, sigma = 6), times 10. A term's frequency is its raw count; its document frequency is
/// the number of pictures with it in any reference; a length is the number of bigrams. Throws as
/// check_cases.
Cider cider(std::span<const CaptionCase> cases, CiderKind kind);

}  // namespace mm::score
