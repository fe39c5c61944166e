#include "lib/image/composite.h"

namespace mm::image {
namespace {

uint8_t over(uint32_t c, uint32_t a, uint32_t behind) {
  const uint32_t v = c * a + behind * (255 - a) + 128;
  return static_cast<uint8_t>((v + (v >> 8)) >> 8);
}

}  // namespace

void composite_row(const uint8_t* rgba, uint8_t* rgb, int32_t pixels, const Alpha& alpha) {
  const uint32_t behind[3] = {alpha.behind.r, alpha.behind.g, alpha.behind.b};
  for (int32_t i = 0; i < pixels; ++i, rgba += 4, rgb += 3) {
    const uint32_t a = alpha.drop ? 255 : rgba[3];
    for (int c = 0; c < 3; ++c) rgb[c] = over(rgba[c], a, behind[c]);
  }
}

}  // namespace mm::image
