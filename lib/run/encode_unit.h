#pragma once
#include <filesystem>
#include <string>
#include <vector>

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
///   sums [count, 4] i64: XXH3-64 of a row's latents, caption, pooled vector and ids (UnitPart)
///   absent [n] i64: rows that could not be read, if any; they have no latents and an empty caption
/// Throws DataError naming the row for a sample that has not one picture, or sides that the VAE's
/// factor does not divide, and for what is not finite in the dtype.
struct UnitJob {
  const data::Dataset& dataset;
  const Encoders& encoders;
  const EncodedSettings& settings;
  uint64_t first = 0, count = 0;
  int threads = 0;
};
/// A row that could not be read, and why.
struct AbsentRow {
  uint64_t row = 0;
  std::string reason;
};
std::vector<AbsentRow> encode_unit(const UnitJob& job, const std::filesystem::path& path,
                                   const ckpt::Metadata& metadata);

}  // namespace mm::run
