#include "lib/health/device_use.h"

#include <doctest/doctest.h>
#include <time.h>

using mm::health::DeviceUse;

TEST_CASE("DeviceUse: the mean of the GPUs that answer; nothing where there is no library") {
  CHECK(DeviceUse(MM_FAKE_NVML_LIBRARY).gpus() == 0.75);
  CHECK(!DeviceUse("no-such-library.so").gpus());
}

TEST_CASE("DeviceUse: a busy thread takes processor time, a waiting one hardly any") {
  DeviceUse use("no-such-library.so");
  const auto cpu_seconds = [] {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double begin = cpu_seconds();
  while (cpu_seconds() < begin + 0.05) {
  }
  const double busy = use.cores();
  CHECK(busy > 0);
  CHECK(busy < 1.5);  // one thread, and what a machine's clocks differ
}
