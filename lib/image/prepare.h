#pragma once
#include <cstddef>
#include <span>

#include "lib/image/decode.h"
#include "lib/image/geometry.h"

namespace mm::image {

/// decode + `prepare_tiles` in one go, with equal bytes: crop, pad, squash and buckets resize
/// upright pictures while rows are decoded, so that a photograph of 12 megapixels takes about 4 MB
/// instead of 36. `header` and `notes` are those of the decoder. Failures as `decode`; "too_large"
/// also for a picture whose padded square exceeds `limits.max_pixels`.
Result<Decoded> decode_prepared(std::span<const std::byte> file, const Preparation& preparation,
                                const DecodeOptions& options = {});

}  // namespace mm::image
