#include "lib/image/bucket_table.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mm::image {
namespace {

/// Sides over 64 of PixArt's table for 1024 x 1024, by height / width from 0.25 to 4; the tall half
/// has no twin of 1344 x 704. The tables for 512 and 256 are halves and quarters of it.
constexpr std::array<Size, 40> kPixArt = {
    {{32, 8},  {31, 8},  {30, 8},  {29, 8},  {28, 9},  {27, 9},  {26, 9},  {25, 10},
     {24, 10}, {23, 11}, {22, 11}, {21, 11}, {21, 12}, {20, 12}, {19, 13}, {18, 13},
     {18, 14}, {17, 14}, {17, 15}, {16, 15}, {16, 16}, {15, 16}, {15, 17}, {14, 17},
     {14, 18}, {13, 18}, {13, 19}, {12, 20}, {12, 21}, {11, 22}, {11, 23}, {10, 24},
     {10, 25}, {9, 26},  {9, 27},  {9, 28},  {8, 29},  {8, 30},  {8, 31},  {8, 32}}};

std::vector<Size> pixart(int32_t unit) {
  std::vector<Size> buckets;
  for (const Size& s : kPixArt) buckets.push_back({s.width * unit, s.height * unit});
  return buckets;
}

}  // namespace

std::vector<Size> bucket_preset(std::string_view name) {
  if (name == "pixart-256") return pixart(16);
  if (name == "pixart-512") return pixart(32);
  if (name == "pixart-1024") return pixart(64);
  if (name != "sdxl") return {};
  return {{1024, 1024}, {1152, 896}, {896, 1152}, {1216, 832}, {832, 1216},
          {1344, 768},  {768, 1344}, {1536, 640}, {640, 1536}};
}

std::string_view bucket_preset_names() { return "sdxl, pixart-256, pixart-512, pixart-1024"; }

std::vector<Size> derive_buckets(const BucketRule& rule) {
  std::vector<Size> buckets;
  const int64_t cells = rule.pixels / (int64_t{rule.multiple} * rule.multiple);
  for (auto height = static_cast<int64_t>(std::sqrt(static_cast<double>(cells))); height >= 1;
       --height) {
    const int64_t width = cells / height;
    if (static_cast<double>(width) > rule.ratio * static_cast<double>(height)) break;
    const Size wide{static_cast<int32_t>(width * rule.multiple),
                    static_cast<int32_t>(height * rule.multiple)};
    buckets.push_back(wide);
    if (width != height) buckets.push_back({wide.height, wide.width});
  }
  return buckets;
}

}  // namespace mm::image
