#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/image/image.h"

namespace mm::image {

/// How a picture gets into one of a set's buckets: scaled to cover it, then cut to its middle.
struct BucketFit {
  Size bucket;
  Size scaled;  ///< one side is the bucket's, the other rounded, not below the bucket's
  Box crop;     ///< of `scaled`: offsets are the floor halves of what is cut away
  /// scaled / original side: above 1 the picture is enlarged.
  double scale = 1;
};

/// Buckets of several resolutions: sorted by pixels, one that has more than this many times the
/// pixels of the one before begins the next resolution.
inline constexpr double kResolutionGap = 1.3;

/// Chooses buckets for many pictures. Immutable, thread-safe.
class BucketChooser {
 public:
  /// `buckets` is not empty, no side is below 1 (else InternalError).
  explicit BucketChooser(std::span<const Size> buckets);

  /// The bucket for an upright picture of size `in`, sides > 0: of the largest resolution in which
  /// it needs no enlargement (else of the smallest), that with the least |log(ratio / ratio of the
  /// picture)|, the first on a tie. Example, of the nine shapes of SDXL: 4000 x 3000 goes to 1152 x
  /// 896, scaled to 1195 x 896, cut from x 21. O(resolutions * log buckets).
  BucketFit fit(Size in) const;

 private:
  struct Shape {
    double log_ratio = 0;
    size_t place = 0;  ///< in the list
    Size size;
  };
  using Resolution = std::vector<Shape>;  ///< by log_ratio
  static Size nearest(const Resolution& shapes, double log_ratio);
  std::vector<Resolution> resolutions_;  ///< smallest first
};

/// The same for one picture.
BucketFit fit_bucket(Size in, std::span<const Size> buckets);

}  // namespace mm::image
