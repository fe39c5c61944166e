#include "lib/image/normalise.h"

#include "lib/base/error.h"

namespace mm::image {

void normalise(std::span<const uint8_t> rgb, const Normalisation& normalisation,
               std::span<float> out) {
  MM_CHECK(rgb.size() % 3 == 0 && rgb.size() == out.size(), "{} bytes to {} floats", rgb.size(),
           out.size());
  const size_t pixels = rgb.size() / 3;
  for (size_t c = 0; c < 3; ++c) {
    std::array<float, 256> table;
    for (size_t v = 0; v < table.size(); ++v) {
      table[v] = static_cast<float>((static_cast<double>(v) / 255.0 - normalisation.mean[c]) /
                                    normalisation.deviation[c]);
    }
    float* plane = out.data() + c * pixels;
    for (size_t i = 0; i < pixels; ++i) plane[i] = table[rgb[3 * i + c]];
  }
}

std::vector<float> normalise(const Image& in, const Normalisation& normalisation) {
  std::vector<float> out(in.rgb.size());
  normalise(in.rgb, normalisation, out);
  return out;
}

}  // namespace mm::image
