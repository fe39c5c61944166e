#pragma once
#include <c10/core/DeviceType.h>

#include "lib/health/device_tests.h"

namespace mm::probe {

struct DeviceBenchOptions {
  double seconds = 5;                       ///< of the product; a fifth of it for each copy
  int64_t side = 8192;                      ///< of the square bf16 matrices
  int64_t copy_bytes = int64_t{256} << 20;  ///< of one copy
};

/// Measures every device of `type` that LibTorch finds: one bf16 product of fixed numbers, again
/// and again on all devices at the same time, and then copies on one after another. Not checked,
/// with the reason, if LibTorch has no such devices. What a device throws is its own problem. The
/// CPU counts as one device, so that a machine without GPU can try it.
health::DeviceTests bench_devices(c10::DeviceType type, const DeviceBenchOptions& options);

}  // namespace mm::probe
