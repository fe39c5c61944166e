#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/data/epoch_plan.h"
#include "lib/image/bucket_fit.h"

namespace mm::data {

/// Sample lengths from a table, for planning before anything is packed.
struct LengthTable {
  std::vector<SampleSize> sizes;
  bool has_images = false;  ///< whether there was such a column; without it images are 0
};

/// Reads a CSV file (.csv or .csv.gz, told apart by content): a header line names the columns;
/// "tokens" is needed, "images" and "targets" are taken if there, others are passed over. Fields
/// are quoted as RFC 4180 says; blank lines and a byte order mark are passed over. Streams; 12
/// bytes a row. Throws IoError, or DataError with file, line, and what was expected.
LengthTable read_lengths(const std::filesystem::path& path);

/// Picture sizes from a table, put into buckets.
struct PictureTable {
  std::vector<SampleSize> sizes;
  uint64_t enlarged = 0;

  /// A picture of this size, upright; the sides of buckets are at most 65,535.
  void add(image::Size size, const image::BucketChooser& buckets);
};

/// Reads a CSV file as read_lengths does; its columns are "width" and "height" in pixels.
PictureTable read_picture_sizes(const std::filesystem::path& path,
                                const image::BucketChooser& buckets);

/// Shortens lengths to `tokens`, as packing with that maximum length would; returns how many.
uint64_t cut_lengths(std::vector<SampleSize>& sizes, int32_t tokens);

}  // namespace mm::data
