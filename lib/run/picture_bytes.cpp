#include "lib/run/picture_bytes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lib/base/html.h"
#include "lib/image/encode.h"

namespace mm::run {

image::Image to_image(const at::Tensor& picture, const PixelNorm& norm) {
  image::Image out;
  out.height = static_cast<int32_t>(picture.size(1));
  out.width = static_cast<int32_t>(picture.size(2));
  const int64_t area = int64_t{out.height} * out.width;
  out.rgb.resize(static_cast<size_t>(3 * area));
  const at::Tensor values = picture.to(at::kFloat).contiguous();
  for (int64_t c = 0; c < 3; ++c) {
    const auto channel = static_cast<size_t>(c);
    for (int64_t p = 0; p < area; ++p) {
      const float value =
          values.const_data_ptr<float>()[c * area + p] * norm.std[channel] + norm.mean[channel];
      const float byte = std::isfinite(value) ? std::clamp(value, 0.0F, 1.0F) * 255.0F : 0.0F;
      out.rgb[static_cast<size_t>(p * 3 + c)] = static_cast<uint8_t>(std::lround(byte));
    }
  }
  return out;
}

std::string png_data_uri(const image::Image& picture) {
  const std::string png = image::encode_png(picture);
  return "data:image/png;base64," + base64(std::as_bytes(std::span(png.data(), png.size())));
}

}  // namespace mm::run
