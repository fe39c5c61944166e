#include "lib/probe/device_bench.h"

#include <ATen/Context.h>
#include <doctest/doctest.h>

using namespace mm;

TEST_CASE("device bench: the CPU, taken as a device, computes steady bits and copies") {
  const probe::DeviceBenchOptions options{.seconds = 0.05, .side = 96, .copy_bytes = 1 << 16};
  const health::DeviceTests one = probe::bench_devices(c10::kCPU, options);
  REQUIRE(one.checked);
  REQUIRE(one.devices.size() == 1);
  const health::DeviceTest& test = one.devices.front();
  CHECK(test.problem == "");
  CHECK(test.steady);
  CHECK(test.gemm_tflop_s.value_or(0) > 0);
  CHECK(test.memory_copy_gb_s.value_or(0) > 0);
  CHECK(test.to_device_gb_s.value_or(0) > 0);
  CHECK(test.to_host_gb_s.value_or(0) > 0);
  const health::DeviceTests again = probe::bench_devices(c10::kCPU, options);
  CHECK(again.devices.front().hash == test.hash);
  CHECK(health::any_bad(health::judge_devices(one, {})) == false);
}

TEST_CASE("device bench: without CUDA it says so; with it every GPU is measured") {
  const health::DeviceTests tests =
      probe::bench_devices(c10::kCUDA, {.seconds = 0.05, .side = 512, .copy_bytes = 1 << 20});
  if (tests.checked) {
    for (const health::DeviceTest& test : tests.devices) CHECK(test.problem == "");
  } else {
    CHECK(tests.devices.empty());
    CHECK(
        (tests.problem == "LibTorch finds no GPU" || tests.problem == "this LibTorch has no CUDA"));
  }
}

TEST_CASE("device bench: a device that throws has the problem, and the verdict names it") {
  const health::DeviceTests tests =
      probe::bench_devices(c10::kCPU, {.seconds = 0.01, .side = 8, .copy_bytes = -1});
  REQUIRE(tests.devices.size() == 1);
  CHECK_FALSE(tests.devices.front().problem.empty());
  const auto findings = health::judge_devices(tests, {});
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().code == "F17");
  CHECK(findings.front().where == "GPU 0");
}
