#include "lib/health/nvml_devices.h"

#include <doctest/doctest.h>

using namespace mm::health;

TEST_CASE("nvml: devices are read, and one that is lost says so") {
  const GpuReport gpus = read_gpus(MM_FAKE_NVML);
  CHECK(gpus.checked);
  CHECK(gpus.driver == "570.1");
  REQUIRE(gpus.devices.size() == 2);
  CHECK(gpus.devices[0].name == "Fake H100");
  CHECK(gpus.devices[0].uuid == "GPU-1");
  CHECK(gpus.devices[0].memory_bytes == uint64_t{80} << 30);
  CHECK(gpus.devices[0].memory_used_bytes == uint64_t{10} << 30);
  CHECK(gpus.devices[0].problem.empty());
  CHECK(gpus.devices[1].problem == "memory: GPU is lost (NVML 15)");
}

TEST_CASE("nvml: without the library, or with another one, nothing is said about GPUs") {
  const GpuReport absent = read_gpus("libno-such-thing.so.9");
  CHECK_FALSE(absent.checked);
  CHECK(absent.problem == "libno-such-thing.so.9 not found");
  CHECK(read_gpus("libc.so.6").problem == "libc.so.6 lacks functions of NVML");
}
