#include "lib/image/resize.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/image/resize_weights.h"

namespace mm::image {
namespace {

uint8_t clip(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kWeightBits, 0, 255));
}

Image nearest(const Image& in, Size out) {
  const auto columns = nearest_sources(in.width, out.width, 0, out.width);
  const auto rows = nearest_sources(in.height, out.height, 0, out.height);
  Image result(out.width, out.height);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x)
      std::copy_n(in.at(columns[x], rows[y]), 3, result.row(y) + size_t{3} * x);
  }
  return result;
}

Image across(const Image& in, int32_t width, Filter filter) {
  const WeightTable table = make_weights(in.width, width, filter, 0, width);
  Image out(width, in.height);
  for (int32_t y = 0; y < in.height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      const Taps& taps = table.taps[x];
      for (int c = 0; c < 3; ++c) {
        int64_t sum = int64_t{1} << (kWeightBits - 1);
        for (int32_t k = 0; k < taps.count; ++k)
          sum += int64_t{table.weights[taps.weights_at + k]} * in.at(taps.first + k, y)[c];
        out.row(y)[3 * x + c] = clip(sum);
      }
    }
  }
  return out;
}

Image down(const Image& in, int32_t height, Filter filter) {
  const WeightTable table = make_weights(in.height, height, filter, 0, height);
  Image out(in.width, height);
  for (int32_t y = 0; y < height; ++y) {
    const Taps& taps = table.taps[y];
    for (size_t i = 0; i < in.row_bytes(); ++i) {
      int64_t sum = int64_t{1} << (kWeightBits - 1);
      for (int32_t k = 0; k < taps.count; ++k)
        sum += int64_t{table.weights[taps.weights_at + k]} * in.row(taps.first + k)[i];
      out.row(y)[i] = clip(sum);
    }
  }
  return out;
}

}  // namespace

bool goes_down_first(Size in, Size out, PassOrder order) {
  const int64_t width_loss = int64_t{in.width} - out.width,
                height_loss = int64_t{in.height} - out.height;
  if (order == PassOrder::kPillow13) return height_loss > 2 * std::max<int64_t>(0, width_loss);
  return in.height > int64_t{100} * in.width && height_loss > 0;
}

std::optional<PassOrder> pass_order_from_name(std::string_view name) {
  if (name == "pillow12") return PassOrder::kPillow12;
  if (name == "pillow13") return PassOrder::kPillow13;
  return std::nullopt;
}

Image resize_reference(const Image& in, Size out, Filter filter, PassOrder order) {
  MM_CHECK(in.width > 0 && in.height > 0 && out.width > 0 && out.height > 0,
           "resize {} x {} to {} x {}", in.width, in.height, out.width, out.height);
  if (filter == Filter::kNearest) return nearest(in, out);
  const bool down_first = goes_down_first({in.width, in.height}, out, order);
  Image result = in;
  if (down_first && in.height != out.height) result = down(result, out.height, filter);
  if (in.width != out.width) result = across(result, out.width, filter);
  return result.height == out.height ? result : down(result, out.height, filter);
}

Image resize_crop(const Image& in, Size out, const Box& crop, Filter filter, PassOrder order) {
  RowResizer resizer(
      {.in = {in.width, in.height}, .out = out, .crop = crop, .filter = filter, .order = order});
  resizer.push(in.rgb.data(), in.height);
  return resizer.finish();
}

Image resize(const Image& in, Size out, Filter filter, PassOrder order) {
  RowResizer resizer({.in = {in.width, in.height},
                      .out = out,
                      .crop = {0, 0, out.width, out.height},
                      .filter = filter,
                      .order = order});
  resizer.push(in.rgb.data(), in.height);
  return resizer.finish();
}

}  // namespace mm::image
