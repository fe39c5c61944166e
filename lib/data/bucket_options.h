#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/bucket_shape.h"
#include "lib/data/pack_options.h"

namespace mm::data {

/// Buckets of geometry "buckets": those of `pictures.buckets` (pairs such as 1024x768 and names of
/// presets), then those derived for each area of `bucket_area` (lib/image/bucket_table.h). None
/// twice. Throws UsageError naming the word that is wrong, or when there are none, or over 4,096.
std::vector<image::Size> buckets_of(const PictureOptions& pictures);

/// The same as a manifest has them.
std::vector<BucketShape> bucket_shapes_of(const PictureOptions& pictures);

/// "1024x1024,1152x896": width x height.
std::string bucket_words(const std::vector<image::Size>& buckets);

/// "4194304", or a product such as "4x1024x1024". Throws UsageError naming the text.
int64_t pixels_from_text(std::string_view text);

}  // namespace mm::data
