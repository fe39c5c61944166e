#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/health/device_tests.h"

// Verdicts on what GPUs computed; the figures are planted, as LibTorch with CUDA would leave them.

using namespace mm::health;

namespace {

DeviceTests equal(int count) {
  DeviceTests tests{.checked = true};
  for (int i = 0; i < count; ++i)
    tests.devices.push_back({.name = "H100",
                             .hash = 7,
                             .gemm_tflop_s = 700 + 3 * (i % 4),
                             .memory_copy_gb_s = 2700 - 10 * (i % 3),
                             .to_device_gb_s = 52,
                             .to_host_gb_s = 51});
  return tests;
}

std::string faults(const DeviceTests& tests, const Expectation& expected = {}) {
  std::string text;
  for (const Finding& f : judge_devices(tests, expected))
    if (!f.code.empty())
      text += fmt::format("{} {} {}: {}\n", level_word(f.level), f.code, f.where, f.what);
  return text;
}

}  // namespace

TEST_CASE("device verdict: equal GPUs are good at any count, and what they reached is said") {
  for (const int count : {1, 2, 3, 8, 64}) CHECK(faults(equal(count)) == "");
  std::string said;
  for (const Finding& f : judge_devices(equal(8), {})) said += f.where + ": " + f.what + "\n";
  CHECK(said ==
        "GPU compute: 8 H100: equal bits\n"
        "GPU bf16 product: 700.0 to 709.0 TFLOP/s (no expectation to judge by)\n"
        "GPU memory copy: 2680.0 to 2700.0 GB/s (no expectation to judge by)\n"
        "GPU copy to device: 52.0 to 52.0 GB/s (no expectation to judge by)\n"
        "GPU copy to host: 51.0 to 51.0 GB/s (no expectation to judge by)\n");
}

TEST_CASE("device verdict: the one GPU whose bits differ is named, wherever it sits") {
  for (int sick = 0; sick < 8; ++sick) {
    DeviceTests tests = equal(8);
    tests.devices[static_cast<size_t>(sick)].hash = 8;
    CHECK(faults(tests) ==
          fmt::format("BAD F55 GPU {}: computes other bits than the other GPUs\n", sick));
  }
  DeviceTests two = equal(2);
  two.devices[1].hash = 8;
  CHECK(faults(two) ==
        "BAD F55 GPU 0: the GPUs compute different bits\n"
        "BAD F55 GPU 1: the GPUs compute different bits\n");
  DeviceTests unsteady = equal(3);
  unsteady.devices[2].steady = false;
  CHECK(faults(unsteady) == "BAD F55 GPU 2: computes other bits from one product to the next\n");
}

TEST_CASE("device verdict: GPUs of two kinds are held against their own") {
  DeviceTests tests = equal(6);
  for (size_t i = 3; i < 6; ++i) {
    tests.devices[i].name = "L40S";
    tests.devices[i].hash = 99;
    tests.devices[i].gemm_tflop_s = 300;
  }
  CHECK(faults(tests) == "");
  tests.devices[4].gemm_tflop_s = 200;
  CHECK(faults(tests) == "BAD F05 GPU 4 bf16 product: slower than the other GPUs\n");
}

TEST_CASE(
    "device verdict: slow against fellows is F05, against the expectation F56, alone neither") {
  DeviceTests tests = equal(8);
  tests.devices[5].gemm_tflop_s = 620;
  tests.devices[2].to_host_gb_s = 25;
  CHECK(faults(tests) ==
        "BAD F05 GPU 5 bf16 product: slower than the other GPUs\n"
        "BAD F05 GPU 2 copy to host: slower than the other GPUs\n");
  Expectation expected;
  expected.speed.to_device_gb_s = 55;
  CHECK(faults(equal(1), expected) == "BAD F56 GPU 0 copy to device: slower than expected\n");
  expected.speed.to_device_gb_s = 54;  // within 5 %
  CHECK(faults(equal(1), expected) == "");
  DeviceTests alone = equal(1);
  alone.devices[0].gemm_tflop_s = 1;
  CHECK(faults(alone) == "");
}

TEST_CASE("device verdict: what was not measured is said, what does not compute is F17") {
  DeviceTests tests = equal(4);
  tests.devices[1] = {.name = "H100", .problem = "CUDA error: uncorrectable ECC error"};
  tests.devices[3].to_host_gb_s.reset();
  CHECK(faults(tests) == "BAD F17 GPU 1: does not compute\n");
  int unchecked = 0;
  for (const Finding& f : judge_devices(tests, {})) unchecked += f.level == Level::kNotChecked;
  CHECK(unchecked == 1);
  const auto none = judge_devices({.problem = "this LibTorch has no CUDA"}, {});
  REQUIRE(none.size() == 1);
  CHECK(finding_line(none[0]) == "not checked     GPU compute: this LibTorch has no CUDA");
}

TEST_CASE("device tests: a driver that kills or holds the measuring process is a result") {
  const DeviceTests good =
      device_tests_guarded([] { return device_tests_json(equal(2)).dump(); }, 10'000);
  CHECK(device_tests_json(good) == device_tests_json(equal(2)));
  const DeviceTests died = device_tests_guarded([]() -> std::string { ::_exit(139); }, 10'000);
  CHECK(faults(died) == "BAD F17 all GPUs: does not compute\n");
  const DeviceTests hung = device_tests_guarded(
      []() -> std::string {
        while (true) ::pause();
      },
      20);
  CHECK(judge_devices(hung, {}).front().evidence == "while they computed: no answer within 20 ms");
  const DeviceTests absent = device_tests_guarded(
      []() -> std::string { throw mm::UsageError("needs LibTorch: no such file"); }, 10'000);
  CHECK_FALSE(absent.checked);
  CHECK(absent.problem == "needs LibTorch: no such file");
}

TEST_CASE("device tests: where the system gives no process, no GPU is to blame") {
  const auto nothing = [] {
    return std::string(R"({"checked": true, "problem": "", "devices": []})");
  };
  // While there are files; UBSan looks at each type it meets for the first time through a pipe.
  REQUIRE(device_tests_guarded(nothing, 10'000).checked);
  rlimit all{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &all) == 0);
  rlimit none = all;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const DeviceTests tests = device_tests_guarded(nothing, 10'000);
  ::setrlimit(RLIMIT_NOFILE, &all);
  CHECK_FALSE(tests.checked);
  CHECK(tests.problem == "the system gave no process to read in");
}

TEST_CASE("device verdict: a GPU whose memory others hold is not judged, its fellows are") {
  DeviceTests tests = equal(4);
  tests.devices[2] = {.name = "H100"};
  CHECK(faults(tests) == "");
  const auto findings = judge_devices(tests, {});
  CHECK(finding_line(findings[0]) ==
        "not checked     GPU 2 compute: too little of its memory was free");
  CHECK(findings[1].what == "3 H100: equal bits");
  CHECK(faults({.checked = true, .devices = {{.name = "H100"}}}) == "");
}

TEST_CASE("device tests: text that is no result is refused") {
  for (const char* text :
       {"[]", "{}", R"({"checked": true, "problem": "", "devices": [{"name": 3}]})",
        R"({"checked": 1, "problem": "", "devices": []})"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(device_tests_from(mm::parse_json(text, "t")), mm::DataError);
  }
  DeviceTests many = equal(65);
  CHECK_THROWS_AS(device_tests_from(device_tests_json(many)), mm::DataError);
}

TEST_CASE("device tests: the time of loading the engine is not taken for a GPU's") {
  // Each child of its own: what the first read is there for the second.
  const std::string store = "/tmp/mm_engine_" + std::to_string(::getpid());
  const auto load = [&] { mm::write_file_atomic(store, "in memory"); };
  // Without the engine it would take for ever.
  const auto measure = [&] {
    if (!std::filesystem::exists(store)) ::pause();
    return device_tests_json(equal(2)).dump();
  };
  CHECK(faults(device_tests_guarded(measure, 100)).starts_with("BAD F17 "));
  const DeviceTests tests =
      device_tests_loaded(load, measure, {.load_ms = 20'000, .measure_ms = 20'000});
  std::filesystem::remove(store);
  CHECK(tests.checked);
  CHECK(faults(tests) == "");
  // An engine that does not come is no fault of a GPU.
  const auto never = [] { ::pause(); };
  for (const DeviceTests& absent :
       {device_tests_loaded(never, measure, {.load_ms = 50}),
        device_tests_loaded([] { ::_exit(127); }, measure, {}),
        device_tests_loaded([] { throw mm::UsageError("no such library"); }, measure, {})}) {
    CHECK_FALSE(absent.checked);
    CHECK(absent.problem.starts_with("the engine with LibTorch: "));
    CHECK(faults(absent) == "");
  }
}
