#include "lib/data/length_table.h"

#include "lib/base/error.h"
#include "lib/data/number_table.h"

namespace mm::data {

LengthTable read_lengths(const std::filesystem::path& file) {
  NumberTable rows(file, {"tokens", "images", "targets"}, 1);
  LengthTable table{.has_images = rows.has(1)};
  while (const auto row = rows.next())
    table.sizes.push_back({.tokens = (*row)[0], .images = (*row)[1], .targets = (*row)[2]});
  return table;
}

PictureTable read_picture_sizes(const std::filesystem::path& file,
                                const image::BucketChooser& buckets) {
  NumberTable rows(file, {"width", "height"}, 2);
  PictureTable table;
  while (const auto row = rows.next()) {
    const image::Size size{(*row)[0], (*row)[1]};
    if (size.width < 1 || size.height < 1) {
      throw DataError("{}: row {}: a picture of {} x {}", file.string(), table.sizes.size() + 1,
                      size.width, size.height);
    }
    table.add(size, buckets);
  }
  return table;
}

void PictureTable::add(image::Size size, const image::BucketChooser& buckets) {
  const image::BucketFit fit = buckets.fit(size);
  enlarged += fit.scale > 1;
  sizes.push_back({.images = 1,
                   .targets = 1,
                   .bucket = {static_cast<uint16_t>(fit.bucket.height),
                              static_cast<uint16_t>(fit.bucket.width)}});
}

uint64_t cut_lengths(std::vector<SampleSize>& sizes, int32_t tokens) {
  uint64_t cut = 0;
  for (SampleSize& size : sizes) {
    if (size.tokens <= tokens) continue;
    size.tokens = tokens;
    ++cut;
  }
  return cut;
}

}  // namespace mm::data
