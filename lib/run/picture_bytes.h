#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "lib/image/image.h"
#include "lib/run/batch_tensors.h"

namespace mm::run {

/// [3, H, W] of a model's range to bytes, clamped and rounded; not-a-numbers are black.
image::Image to_image(const at::Tensor& picture, const PixelNorm& norm);

/// The picture as PNG in a data: URI.
std::string png_data_uri(const image::Image& picture);

}  // namespace mm::run
