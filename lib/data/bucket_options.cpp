#include "lib/data/bucket_options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "lib/base/error.h"
#include "lib/image/bucket_table.h"

namespace mm::data {
namespace {

constexpr int32_t kMaxSide = 16384;
constexpr size_t kMaxBuckets = 4096;

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    words.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return words;
}

std::optional<int64_t> number_of(std::string_view word) {
  int64_t number = 0;
  const auto end = std::from_chars(word.data(), word.data() + word.size(), number);
  if (end.ec != std::errc() || end.ptr != word.data() + word.size() || number < 1)
    return std::nullopt;
  return number;
}

/// Of "1024x768".
std::optional<image::Size> pair_of(std::string_view word) {
  const size_t cross = word.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto width = number_of(word.substr(0, cross)), height = number_of(word.substr(cross + 1));
  if (!width || !height || *width > kMaxSide || *height > kMaxSide) return std::nullopt;
  return image::Size{static_cast<int32_t>(*width), static_cast<int32_t>(*height)};
}

void add(std::vector<image::Size>& buckets, const std::vector<image::Size>& more) {
  for (const image::Size& bucket : more) {
    if (std::ranges::find(buckets, bucket) == buckets.end()) buckets.push_back(bucket);
  }
  if (buckets.size() > kMaxBuckets)
    throw UsageError("over {} buckets; take a larger multiple or fewer of them", kMaxBuckets);
}

std::vector<image::Size> named(std::string_view word) {
  if (const auto pair = pair_of(word)) return {*pair};
  std::vector<image::Size> preset = image::bucket_preset(word);
  if (preset.empty()) {
    throw UsageError(
        "buckets: \"{}\" is neither width x height, such as 1024x768 (sides from 1 to {}), nor a "
        "preset ({})",
        word, kMaxSide, image::bucket_preset_names());
  }
  return preset;
}

std::vector<image::Size> derived(std::string_view word, const PictureOptions& pictures) {
  const auto pair = pair_of(word);
  const auto pixels = pair ? int64_t{pair->width} * pair->height : number_of(word);
  if (!pixels || *pixels > int64_t{kMaxSide} * kMaxSide) {
    throw UsageError("bucket area \"{}\" is neither width x height nor a number of pixels", word);
  }
  if (pictures.bucket_multiple < 1 || pictures.bucket_multiple > kMaxSide)
    throw UsageError("bucket multiple is {}; it must be 1 to {}", pictures.bucket_multiple,
                     kMaxSide);
  if (!(pictures.bucket_ratio >= 1 && pictures.bucket_ratio <= 64))
    throw UsageError("bucket ratio is {}; it must be 1 to 64", pictures.bucket_ratio);
  auto buckets = image::derive_buckets(
      {.pixels = *pixels, .multiple = pictures.bucket_multiple, .ratio = pictures.bucket_ratio});
  std::erase_if(buckets,
                [](const image::Size& b) { return std::max(b.width, b.height) > kMaxSide; });
  if (buckets.empty()) {
    throw UsageError("no bucket of {} pixels has sides that are multiples of {}", *pixels,
                     pictures.bucket_multiple);
  }
  return buckets;
}

}  // namespace

std::vector<image::Size> buckets_of(const PictureOptions& pictures) {
  std::vector<image::Size> buckets;
  for (const std::string_view word : words_of(pictures.buckets)) add(buckets, named(word));
  for (const std::string_view word : words_of(pictures.bucket_area))
    add(buckets, derived(word, pictures));
  if (buckets.empty()) {
    throw UsageError(
        "geometry buckets needs --buckets (1024x1024,1152x896,... or a preset: {}) or "
        "--bucket-area",
        image::bucket_preset_names());
  }
  return buckets;
}

int64_t pixels_from_text(std::string_view text) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t pixels = 1;
  for (std::string_view left = text;;) {
    const size_t cross = left.find('x');
    const auto factor = number_of(left.substr(0, cross));
    if (!factor || *factor > kMost / pixels)
      throw UsageError("\"{}\" is no number of pixels such as 4194304 or 4x1024x1024", text);
    pixels *= *factor;
    if (cross == std::string_view::npos) return pixels;
    left.remove_prefix(cross + 1);
  }
}

std::vector<BucketShape> bucket_shapes_of(const PictureOptions& pictures) {
  std::vector<BucketShape> shapes;
  for (const image::Size& bucket : buckets_of(pictures))
    shapes.push_back({static_cast<uint16_t>(bucket.height), static_cast<uint16_t>(bucket.width)});
  return shapes;
}

std::string bucket_words(const std::vector<image::Size>& buckets) {
  std::string words;
  for (const image::Size& bucket : buckets)
    words += fmt::format("{}{}x{}", words.empty() ? "" : ",", bucket.width, bucket.height);
  return words;
}

}  // namespace mm::data
