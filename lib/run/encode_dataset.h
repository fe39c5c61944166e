#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>

#include "lib/run/encode_unit.h"
#include "lib/run/encoded_manifest.h"
#include "lib/run/frozen_encoders.h"

namespace mm::run {

struct EncodeOptions {
  std::filesystem::path dataset;
  EncoderPaths encoders;  ///< at least one
  std::filesystem::path output;
  bool mean_only = false;
  std::string dtype = "fp32";  ///< of what is stored; encoders run in fp32
  int rank = 0, world = 1;     ///< this process's share of the units
  int threads = 0;             ///< 0: all cores
  double bad_limit = 0.001;    ///< share of the rows that may be absent
  std::function<void(uint64_t done, uint64_t of)> on_unit = {};
  std::function<void(const AbsentRow&)> on_absent = {};
};

struct EncodeResult {
  uint64_t units = 0, made = 0, present = 0;  ///< of this set; by this call; made before it
  uint64_t absent = 0;                        ///< rows of this set that could not be read
  bool complete = false;                      ///< the output is there; else others are at work
};

/// Stores what frozen encoders make of a data set's pictures and captions. Units of kUnitRows rows
/// are dealt to the ranks by number; units that are there already are kept, so that a call after a
/// kill goes on where that one stopped. The rank that finds all units present writes the manifest
/// and renames OUTPUT.partial to OUTPUT (law 4). Same bytes for any number of ranks and threads.
/// A row that cannot be read is recorded as absent. Throws UsageError (options; an output of other
/// settings), DataError (more absent rows than the limit; a text encoder with another tokenizer
/// than the data set's; a VAE whose factor does not fit), IoError.
EncodeResult encode_dataset(const EncodeOptions& options);

}  // namespace mm::run
