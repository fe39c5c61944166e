#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/data/pack_options.h"
#include "lib/data/pack_tasks.h"

namespace mm::data {

/// What does not change the bytes.
struct PackRun {
  std::filesystem::path output;
  int threads = 0;          ///< 0: all cores
  double bad_limit = 0.01;  ///< fraction of all samples that may be bad
  TaskShare share = {};     ///< of the tasks that pack this set together
  /// A task that shows no life for so long is taken for dead, and its work done again. Longer than
  /// a network file system caches attributes.
  double dead_after_s = 120;
  std::function<void(int64_t rows)> on_rows =
      {};  ///< progress of this task: called from many threads after each unit
  std::function<void(int64_t rows)> on_total =
      {};  ///< rows of the source, once they are counted (kinds that are cheap to count)
};

struct PackResult {
  DatasetManifest manifest;
  bool was_there = false;  ///< the output was already packed with these options; nothing was done
  bool by_other = false;   ///< another task of the job finished it
  uint64_t units_reused = 0;  ///< of a run that was killed, or of other tasks
  uint64_t units = 0;
};

/// Source to data set. Same options and inputs: same bytes, whatever the number of threads and of
/// tasks and however often they were killed. Pictures must not change meanwhile. Any number of
/// processes may call it at the same time with the same options and output, on any machines that
/// share the file system, and start and die at any time: they share the work, and the one that
/// comes last writes the manifest; each returns when the output is there. Work in progress stands
/// in OUTPUT.partial; the output appears by one rename, whole (law 4). That it is complete is
/// checked (the rows that the source gave are those packed and those in the ledger) and written
/// into the manifest, where `verify` checks it again. Throws UsageError (options; output or
/// .partial of other options), DataError (source broken, too many bad samples, none at all),
/// IoError. Memory: about one sample per thread, and 200 bytes a sample of the set.
PackResult pack_dataset(const PackOptions& options, const PackRun& run);

}  // namespace mm::data
