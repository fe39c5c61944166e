#include "lib/image/bucket_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/error.h"

namespace mm::image {
namespace {

int64_t pixels(Size size) { return int64_t{size.width} * size.height; }

double log_ratio_of(Size size) { return std::log(static_cast<double>(size.width) / size.height); }

int32_t rounded(int64_t side, int64_t to, int64_t from) {
  return static_cast<int32_t>((2 * side * to + from) / (2 * from));
}

BucketFit cover(Size in, Size bucket) {
  BucketFit fit{.bucket = bucket, .scaled = bucket};
  const bool tall = int64_t{bucket.height} * in.width > int64_t{bucket.width} * in.height;
  if (tall) {
    fit.scaled.width = std::max(bucket.width, rounded(in.width, bucket.height, in.height));
    fit.scale = static_cast<double>(bucket.height) / in.height;
  } else {
    fit.scaled.height = std::max(bucket.height, rounded(in.height, bucket.width, in.width));
    fit.scale = static_cast<double>(bucket.width) / in.width;
  }
  fit.crop = {(fit.scaled.width - bucket.width) / 2, (fit.scaled.height - bucket.height) / 2,
              bucket.width, bucket.height};
  return fit;
}

}  // namespace

BucketChooser::BucketChooser(std::span<const Size> buckets) {
  MM_CHECK(!buckets.empty(), "no bucket to choose from");
  std::vector<size_t> order(buckets.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return pixels(buckets[i]); });
  int64_t before = 0;
  for (const size_t i : order) {
    const int64_t now = pixels(buckets[i]);
    MM_CHECK(now > 0, "bucket of {} x {}", buckets[i].width, buckets[i].height);
    if (static_cast<double>(now) > kResolutionGap * static_cast<double>(before))
      resolutions_.emplace_back();
    resolutions_.back().push_back({log_ratio_of(buckets[i]), i, buckets[i]});
    before = now;
  }
  for (Resolution& shapes : resolutions_) {
    std::ranges::sort(shapes, {}, [](const Shape& s) { return std::pair(s.log_ratio, s.place); });
  }
}

Size BucketChooser::nearest(const Resolution& shapes, double log_ratio) {
  // Distances that are the same number may differ in the last bits of their logarithms.
  constexpr double kEqual = 1e-12;
  const auto distance = [&](const Shape& s) { return std::fabs(s.log_ratio - log_ratio); };
  const auto above = std::ranges::lower_bound(shapes, log_ratio, {}, &Shape::log_ratio);
  double least = above == shapes.end() ? INFINITY : distance(*above);
  if (above != shapes.begin()) least = std::min(least, distance(*(above - 1)));
  const auto first =
      std::ranges::lower_bound(shapes, log_ratio - least - kEqual, {}, &Shape::log_ratio);
  const Shape* best = nullptr;
  for (auto s = first; s != shapes.end() && s->log_ratio <= log_ratio + least + kEqual; ++s) {
    if (distance(*s) <= least + kEqual && (best == nullptr || s->place < best->place)) best = &*s;
  }
  return best->size;
}

BucketFit BucketChooser::fit(Size in) const {
  MM_CHECK(in.width > 0 && in.height > 0, "a picture of {} x {}", in.width, in.height);
  const double log_ratio = log_ratio_of(in);
  for (size_t r = resolutions_.size() - 1; r > 0; --r) {
    const BucketFit fit = cover(in, nearest(resolutions_[r], log_ratio));
    if (fit.scale <= 1) return fit;
  }
  return cover(in, nearest(resolutions_.front(), log_ratio));
}

BucketFit fit_bucket(Size in, std::span<const Size> buckets) {
  return BucketChooser(buckets).fit(in);
}

}  // namespace mm::image
