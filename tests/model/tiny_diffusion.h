#pragma once
#include <cstdint>
#include <vector>

#include "lib/model/diffusion.h"

namespace mm::model::test {

/// Two layers of width 24 (MMDiT: 16 a head), patches of 2, four latent channels.
DiffusionConfig tiny_dit();
/// Stored captions of width 10, at most 5 tokens.
DiffusionConfig tiny_pixart();
/// With a text encoder of 20 words, width 12, two layers.
DiffusionConfig tiny_texted();
/// With q/k norms and a second attention in layer 0.
DiffusionConfig tiny_sd3();
std::vector<DiffusionConfig> tiny_families();

/// Flow for SD3, noise prediction with the variational bound for the others.
Objective tiny_objective(const DiffusionConfig& config);

/// What a micro-batch of a test holds: pictures with these ids, all drawn from the id alone.
struct TinyPictures {
  std::vector<int64_t> ids;
  int64_t height = 4, width = 6;
  int64_t caption_padding = 0;  ///< rows behind the longest stored caption, with odd values
  bool null = false;            ///< Batch::diffusion is null when there is no picture
};
Batch tiny_pictures(const DiffusionConfig& config, const TinyPictures& pictures,
                    at::ScalarType dtype = at::kDouble);

}  // namespace mm::model::test
