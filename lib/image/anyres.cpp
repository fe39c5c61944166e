#include "lib/image/anyres.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"

namespace mm::image {
namespace {

// Doubles in the order of operations of the reference, which decides borderline cases.
int32_t fitted(int32_t side, double scale) { return static_cast<int32_t>(side * scale); }

// int(round(x, 7)) of the reference: cut down, but for what is an integer up to rounding errors.
int32_t cut_down(double x) {
  const double up = std::ceil(x);
  return static_cast<int32_t>(up - x <= 5e-8 ? up : std::floor(x));
}

// n // divisor as Python computes it, which is not always floor(n / divisor) of the rounded
// quotient.
int32_t whole_quotient(int32_t n, double divisor) {
  return static_cast<int32_t>(std::lround((n - std::fmod(n, divisor)) / divisor));
}

}  // namespace

Size best_grid(Size in, std::span<const Size> points) {
  MM_CHECK(!points.empty(), "no grid to choose from");
  const int64_t area = int64_t{in.width} * in.height;
  int64_t best_effective = 0, best_waste = 0;
  Size best = points.front();
  for (const Size& point : points) {
    const double scale = std::min(static_cast<double>(point.width) / in.width,
                                  static_cast<double>(point.height) / in.height);
    const int64_t effective =
        std::min(int64_t{fitted(in.width, scale)} * fitted(in.height, scale), area);
    const int64_t waste = int64_t{point.width} * point.height - effective;
    const bool better =
        effective > best_effective || (effective == best_effective && waste < best_waste);
    if (&point != points.data() && !better) continue;
    best = point;
    best_effective = effective;
    best_waste = waste;
  }
  return best;
}

Box unpadded_grid(Size in, int32_t side, Size grid) {
  const int32_t height = side * grid.height, width = side * grid.width;
  const double ratio = static_cast<double>(in.width) / in.height;
  if (ratio > static_cast<double>(width) / height) {
    const int32_t fits = cut_down(in.height * (static_cast<double>(width) / in.width));
    const int32_t top = (height - fits) / 2;
    return {0, top, width, height - 2 * top};
  }
  const int32_t fits = cut_down(in.width * (static_cast<double>(height) / in.height));
  const int32_t left = (width - fits) / 2;
  return {left, 0, width - 2 * left, height};
}

Size scaled_grid(Size patches, int32_t side, int32_t max_tiles) {
  if (max_tiles == 0) return patches;
  const auto have = static_cast<double>(int64_t{patches.width} * patches.height);
  const double ratio = std::sqrt(have / static_cast<double>(int64_t{max_tiles} * side * side));
  if (ratio <= 1.1) return patches;
  return {whole_quotient(patches.width, ratio), whole_quotient(patches.height, ratio)};
}

int32_t anyres_tokens(Size in, int32_t side, Size grid, int32_t max_tiles) {
  const Box kept = unpadded_grid(in, side, grid);
  const Size scaled = scaled_grid({kept.width, kept.height}, side, max_tiles);
  return side * side + scaled.height * scaled.width + scaled.height;
}

}  // namespace mm::image
