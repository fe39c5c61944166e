#include "lib/health/full_tests.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "tests/health/planted_node.h"

using namespace mm::health;

namespace {

std::vector<std::string> codes(const FullTests& tests, const Expectation& expected) {
  std::vector<std::string> found;
  for (const Finding& f : judge_full(tests, expected))
    if (!f.code.empty()) found.push_back(f.code + " " + f.where);
  return found;
}

}  // namespace

TEST_CASE("full tests: all run here, quickly, and find nothing wrong") {
  const test::PlantedTree tree;
  const FullTests tests = run_full_tests(
      {.seconds = 0.05, .memory_bytes = 8 << 20, .disk_bytes = 8 << 20, .directory = tree.root()});
  CHECK(tests.gemm_gflop_s.value_or(0) > 0);
  CHECK(tests.memory_copy_gb_s.value_or(0) > 0);
  CHECK(tests.disk_write_mb_s.value_or(0) > 0);
  CHECK(tests.disk_read_mb_s.value_or(0) > 0);
  CHECK(tests.wrong_cores.empty());
  CHECK(tests.memory_wrong_words == 0);
  CHECK(tests.memory_tested_bytes == 8 << 20);
  CHECK(tests.problems.empty());
  CHECK(std::filesystem::is_empty(tree.root()));
}

TEST_CASE("full tests: a product has the same bits every time") {
  CHECK(run_gemm(0, 0).hash == run_gemm(0, 0.02).hash);
  CHECK(test_memory(1 << 16, 3) == 0);
}

TEST_CASE("full tests: verdicts on planted measurements") {
  Expectation expected;
  expected.speed.gemm_gflop_s = 100;
  FullTests good{.cores = 4, .gemm_gflop_s = 99, .core_gflop_s = {25, 25, 24, 25}};
  CHECK(codes(good, expected).empty());
  FullTests slow = good;
  slow.gemm_gflop_s = 90;
  CHECK(codes(slow, expected) == std::vector<std::string>{"F56 fp32 product"});
  FullTests wrong = good;
  wrong.wrong_cores = {2};
  wrong.memory_tested_bytes = 1 << 20;
  wrong.memory_wrong_words = 3;
  CHECK(codes(wrong, expected) == std::vector<std::string>{"F55 core 2", "F55 memory"});
  FullTests lame = good;
  lame.core_gflop_s[1] = 5;
  CHECK(codes(lame, expected) == std::vector<std::string>{"F05 core 1"});
}

TEST_CASE("full tests: a directory that cannot be written is said, not passed") {
  const FullTests tests = run_full_tests(
      {.seconds = 0.01, .memory_bytes = 1 << 16, .disk_bytes = 1, .directory = "/no/such"});
  CHECK_FALSE(tests.disk_write_mb_s);
  CHECK(tests.problems.size() == 1);
  CHECK_THROWS_AS(disk_rate("/no/such", 1), mm::IoError);
}

TEST_CASE("full tests: GPUs are measured by who can; without, that is said") {
  const test::PlantedTree tree;
  FullTestOptions options{
      .seconds = 0.01, .memory_bytes = 1 << 16, .disk_bytes = 1, .directory = tree.root()};
  CHECK_FALSE(run_full_tests(options).devices.checked);
  options.measure_devices = [] {
    return DeviceTests{.checked = true,
                       .devices = {{.name = "H100", .hash = 1, .gemm_tflop_s = 700},
                                   {.name = "H100", .hash = 1, .gemm_tflop_s = 500}}};
  };
  const FullTests tests = run_full_tests(options);
  CHECK(tests.devices.devices.size() == 2);
  Expectation expected;
  expected.speed.gpu_gemm_tflop_s = 650;
  const auto found = codes(tests, expected);
  CHECK(std::find(found.begin(), found.end(), "F56 GPU 1 bf16 product") != found.end());
  CHECK(std::find(found.begin(), found.end(), "F56 GPU 0 bf16 product") == found.end());
}
