#pragma once
#include <cstdint>
#include <filesystem>

namespace mm::bench {

/// A packed set of `count` pictures of noise, square, in two classes; returns its directory.
std::filesystem::path pack_noise(const std::filesystem::path& directory, int64_t count,
                                 int64_t side);

/// diffusers' directory of an AutoencoderKL of Stable Diffusion's sizes with random weights.
std::filesystem::path write_random_vae(const std::filesystem::path& directory);

}  // namespace mm::bench
