#include "lib/data/bucketing.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/data/bucket_options.h"
#include "lib/data/json_fields.h"
#include "lib/image/bucket_fit.h"

namespace mm::data {
namespace {

double area(image::Size size) { return static_cast<double>(size.width) * size.height; }

}  // namespace

uint64_t Bucketing::filled() const {
  return static_cast<uint64_t>(std::ranges::count_if(pictures, [](uint64_t n) { return n > 0; }));
}

Bucketing bucketing_of(std::span<const UnitSample> samples, const PictureOptions& pictures) {
  const std::vector<image::Size> buckets = buckets_of(pictures);
  const image::BucketChooser chooser(buckets);
  Bucketing result{.pictures = std::vector<uint64_t>(buckets.size(), 0)};
  for (const UnitSample& sample : samples) {
    const image::BucketFit fit = chooser.fit({sample.original.width, sample.original.height});
    const auto place = std::ranges::find(buckets, image::Size{sample.width, sample.height});
    MM_CHECK(place != buckets.end(), "sample \"{}\" is in no bucket", sample.key);
    ++result.pictures[static_cast<size_t>(place - buckets.begin())];
    result.enlarged += fit.scale > 1;
    result.largest_scale = std::max(result.largest_scale, fit.scale);
    result.cut_away += 1 - area(fit.bucket) / area(fit.scaled);
    result.cut_captions += sample.cut;
  }
  if (!samples.empty()) result.cut_away /= static_cast<double>(samples.size());
  return result;
}

Json to_json(const Bucketing& bucketing) {
  return {{"pictures", bucketing.pictures},
          {"enlarged", bucketing.enlarged},
          {"largest_scale", bucketing.largest_scale},
          {"cut_away", bucketing.cut_away},
          {"cut_captions", bucketing.cut_captions}};
}

Bucketing bucketing_from_json(const Json& json, std::string_view origin) try {
  Bucketing bucketing;
  json.at("pictures").get_to(bucketing.pictures);
  json.at("enlarged").get_to(bucketing.enlarged);
  json.at("largest_scale").get_to(bucketing.largest_scale);
  json.at("cut_away").get_to(bucketing.cut_away);
  json.at("cut_captions").get_to(bucketing.cut_captions);
  return bucketing;
} catch (const Json::exception& error) {
  throw DataError("{}: bucketing: {}", origin, error.what());
}

std::string bucketing_line(const Bucketing& bucketing) {
  return fmt::format(
      "in {} of {} buckets; {} enlarged, {:.2f} times at most; {:.1f} % cut away on average; {} "
      "captions cut",
      bucketing.filled(), bucketing.pictures.size(), bucketing.enlarged, bucketing.largest_scale,
      100 * bucketing.cut_away, bucketing.cut_captions);
}

}  // namespace mm::data
