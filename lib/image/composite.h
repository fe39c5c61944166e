#pragma once
#include <cstdint>

#include "lib/image/decode.h"

namespace mm::image {

/// [pixels, 4] RGBA bytes, colour not multiplied by alpha, to [pixels, 3]: round((c * a + behind *
/// (255 - a)) / 255), or c where alpha is dropped.
void composite_row(const uint8_t* rgba, uint8_t* rgb, int32_t pixels, const Alpha& alpha);

}  // namespace mm::image
