#pragma once
#include <string>

#include "lib/base/json.h"

namespace mm::mmtrain {

/// Loads libmm_engine.so (from ../lib beside the program) with LibTorch, and runs `verb` with
/// `options` in it. Returns the exit code; the engine prints its own one-line error. LIBTORCH=/path
/// (folder with lib/) is loaded instead of the LibTorch that the engine was linked with. Sets
/// OMP_NUM_THREADS for plain srun if nobody did: it must stand before the OpenMP runtime loads.
/// Throws UsageError if the engine or LibTorch cannot be loaded, with the loader's reason.
int call_engine(const std::string& verb, const Json& options);

}  // namespace mm::mmtrain
