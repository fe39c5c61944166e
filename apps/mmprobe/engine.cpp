// The doors of what needs LibTorch: text in, text or an exit code out. No exception crosses them.
#include <c10/util/Logging.h>

#include <cstdlib>
#include <exception>

#include "lib/base/cli.h"
#include "lib/probe/device_bench.h"
#include "lib/probe/gloo_backend.h"
#include "lib/probe/nccl_verb.h"

extern "C" __attribute__((visibility("default"))) int mm_probe_engine_run(const char* options) {
  return mm::run_cli("mmprobe", [&] {
    // c10d prints stack traces of errors that we report in one line.
    ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
    c10::initLogging();
    const auto parsed = mm::probe::options_from_json(mm::parse_json(options, "engine options"));
    return mm::probe::run_nccl_verb(parsed, [](const mm::probe::BackendSeat& seat,
                                               mm::probe::RankStar& star) {
      return mm::probe::make_gloo_backend(
          {.members = seat.members, .address = seat.address, .timeout_s = seat.timeout_s}, star);
    });
  });
}

// Gives device_tests_json of all GPUs to `take`, once.
extern "C" __attribute__((visibility("default"))) void mm_probe_engine_devices(
    double seconds, void (*take)(void* context, const char* text), void* context) {
  mm::health::DeviceTests tests;
  try {
    tests = mm::probe::bench_devices(c10::kCUDA, {.seconds = seconds});
  } catch (const std::exception& error) {
    tests = {.problem = error.what()};
  }
  take(context, mm::health::device_tests_json(tests).dump().c_str());
}
