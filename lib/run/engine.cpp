#include "lib/run/engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include "lib/base/env.h"
#include "lib/base/error.h"

namespace mm::run {
namespace {

/// Keeps freed tensor memory in the process: a step asks for the same sizes again, and giving pages
/// back to the kernel between steps costs their clearing each time. A user's own settings win.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kGiB = 1 << 30, kTopPad = 64 << 20;
  if (!env::get("MALLOC_MMAP_THRESHOLD_")) mallopt(M_MMAP_THRESHOLD, kGiB);
  if (!env::get("MALLOC_TRIM_THRESHOLD_")) mallopt(M_TRIM_THRESHOLD, kGiB);
  if (!env::get("MALLOC_TOP_PAD_")) mallopt(M_TOP_PAD, kTopPad);
#endif
}

/// Before any tensor work: later threads inherit these. Denormals alone can make products 50 times
/// slower.
void prepare_process() {
  keep_freed_memory();
  at::globalContext().setFlushDenormal(true);
  if (const auto threads = env::get_int("OMP_NUM_THREADS", 1, 4096))
    at::set_num_threads(static_cast<int>(*threads));
}

}  // namespace

int run_verb(const std::string& verb, const Json& options) {
  prepare_process();
  try {
    if (verb == "run") return verb_run(options);
    if (verb == "check") return verb_check(options);
    if (verb == "eval") return verb_eval(options);
    if (verb == "caption") return verb_caption(options);
  } catch (const c10::Error& error) {
    throw InternalError("LibTorch: {}", error.what_without_backtrace());
  }
  throw InternalError("the engine has no verb {}", verb);
}

}  // namespace mm::run
