#include "lib/run/engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/model/cpu_allocator.h"

namespace mm::run {
namespace {

/// Freed tensor memory that may wait for the next step.
constexpr int64_t kMaxIdleBytes = int64_t{4} << 30;

/// Before any tensor work: later threads inherit these. Denormals alone can make products 50 times
/// slower.
void prepare_process() {
  model::install_cpu_allocator(kMaxIdleBytes);
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
    if (verb == "sample") return verb_sample(options);
    if (verb == "encode") return verb_encode(options);
    if (verb == "verify") return verb_verify(options);
  } catch (const c10::Error& error) {
    throw InternalError("LibTorch: {}", error.what_without_backtrace());
  }
  throw InternalError("the engine has no verb {}", verb);
}

}  // namespace mm::run
