#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/data/pack_options.h"

namespace mm::data {

/// What does not change the bytes.
struct PackRun {
  std::filesystem::path output;
  int threads = 0;          ///< 0: all cores
  double bad_limit = 0.01;  ///< fraction of all samples that may be bad
  std::function<void(int64_t rows)> on_rows =
      {};  ///< progress: called from many threads after each unit
};

struct PackResult {
  DatasetManifest manifest;
  bool was_there = false;  ///< the output was already packed with these options; nothing was done
  uint64_t units_reused = 0;  ///< of a run that was killed
  uint64_t units = 0;
};

/// Source to data set. Same options and inputs: same bytes, whatever the thread count and however
/// often it was killed. Pictures must not change meanwhile. Work in progress stands in
/// OUTPUT.partial; the output appears by one rename, whole (law 4). Throws UsageError (options;
/// output or .partial of other options), DataError (source broken, too many bad samples, none at
/// all), IoError. Memory: about one unit (128 records) of prepared pictures per thread, and 200
/// bytes a sample.
PackResult pack_dataset(const PackOptions& options, const PackRun& run);

}  // namespace mm::data
