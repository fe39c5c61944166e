#pragma once
#include <filesystem>

#include "lib/ckpt/safetensors_header.h"
#include "lib/data/dataset.h"
#include "lib/run/encoded_manifest.h"
#include "lib/run/frozen_encoders.h"

namespace mm::run {

/// Encodes rows [first, first + count) one by one, in parallel, each on one thread: the bytes
/// depend neither on threads nor on what else is encoded. Writes a safetensors file by law 4 with
/// `metadata`:
///   latents.HxW.rows [n] i64, latents.HxW [n, 2C or C, h, w]   for each size of pictures, pixels
///   captions.ends [count] i64, captions [tokens, D], pooled [count, P]
/// Throws DataError naming the row for a sample that is damaged or has not one picture, or sides
/// that the VAE's factor does not divide.
struct UnitJob {
  const data::Dataset& dataset;
  const Encoders& encoders;
  const EncodedSettings& settings;
  uint64_t first = 0, count = 0;
  int threads = 0;
};
void encode_unit(const UnitJob& job, const std::filesystem::path& path,
                 const ckpt::Metadata& metadata);

}  // namespace mm::run
