#include "lib/health/nvml_devices.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/health/h100_node.h"

using namespace mm::health;
using mm::health::test::H100Node;

TEST_CASE("nvml: devices are read in full, and one that is lost says so") {
  H100Node node;
  node.gpu(1, "return.nvmlDeviceGetMemoryInfo_v2", "15");
  node.gpu(0, "memory_used", "1048576");
  node.gpu(0, "link.2.replays", "7");
  node.gpu(2, "return.nvmlDeviceGetRemappedRows", "3");
  node.options();
  const GpuReport gpus = read_gpus(MM_FAKE_NVML_LIBRARY);
  CHECK(gpus.checked);
  CHECK(gpus.driver == "570.124.06");
  CHECK(gpus.cuda == "12.8");
  REQUIRE(gpus.devices.size() == 8);
  const GpuDevice& gpu = gpus.devices[0];
  CHECK(gpu.name == "NVIDIA H100 80GB HBM3");
  CHECK(gpu.bus_id == "0000:13:00.0");
  CHECK(gpu.memory_bytes == uint64_t{81559} << 20);
  CHECK(gpu.memory_used_bytes == 1048576);
  CHECK(gpu.links.size() == 18);
  CHECK(gpu.links[2].replays == 7);
  CHECK(gpu.links[2].remote == H100Node::nvswitch_bdf(0));
  CHECK(gpu.links[17].remote == H100Node::nvswitch_bdf(3));
  CHECK(gpu.links[17].to_switch);
  CHECK(gpu.recovery_action == 0);
  CHECK(gpu.problem.empty());
  CHECK(gpus.devices[1].problem == "memory: GPU is lost (NVML 15)");
  CHECK(gpus.devices[1].problem_code == 15);
  CHECK_FALSE(gpus.devices[2].rows);  // not supported is no fault
  CHECK(gpus.devices[2].problem.empty());
}

TEST_CASE("nvml: the report survives the way through a child process") {
  H100Node node;
  node.gpu(3, "ecc_uncorrected", "5");
  node.gpu(3, "process", "99");
  node.options();
  const GpuReport direct = read_gpus(MM_FAKE_NVML_LIBRARY);
  const GpuReport guarded = read_gpus_guarded(MM_FAKE_NVML_LIBRARY, 10'000);
  CHECK(gpus_json(direct) == gpus_json(guarded));
  CHECK_THROWS_AS(gpus_from_json(mm::Json{{"checked", 1}}), mm::DataError);
}

TEST_CASE("nvml: without the library, or with another one, nothing is said about GPUs") {
  const GpuReport absent = read_gpus("libno-such-thing.so.9");
  CHECK_FALSE(absent.checked);
  CHECK(absent.problem == "libno-such-thing.so.9 not found");
  CHECK(read_gpus("libc.so.6").problem == "libc.so.6 lacks functions of NVML");
}
