#include "lib/health/gpu_verdict.h"

#include <doctest/doctest.h>

using namespace mm::health;

namespace {

GpuReport one_gpu() {
  GpuReport gpus{.checked = true, .driver = "570.1", .cuda = "12.8"};
  gpus.devices.push_back(
      {.name = "NVIDIA H100", .bus_id = "0000:13:00.0", .memory_bytes = 80ULL << 30});
  return gpus;
}

template <typename Spoil>
std::string codes(Spoil&& spoil, const Expectation& expected = {}) {
  GpuReport gpus = one_gpu();
  spoil(gpus, gpus.devices.front());
  std::string text;
  for (const Finding& f : judge_gpus(gpus, expected, {}))
    text += f.code.empty() ? std::string(level_word(f.level)) : f.code;
  return text;
}

Expectation with(void (*change)(Expectation::Gpu&)) {
  Expectation expected;
  change(expected.gpu);
  return expected;
}

}  // namespace

TEST_CASE("GPU verdict: what is not told is no fault") {
  CHECK(codes([](GpuReport&, GpuDevice&) {}) == "ok");
}

TEST_CASE("GPU verdict: kind, memory and versions against the expectation") {
  const auto same = [](GpuReport&, GpuDevice&) {};
  CHECK(codes(same, with([](Expectation::Gpu& e) { e.name = "NVIDIA H200"; })) == "F51");
  CHECK(codes(same, with([](Expectation::Gpu& e) { e.memory_gib_min = 90; })) == "F51");
  CHECK(codes(same, with([](Expectation::Gpu& e) { e.count = 8; })) == "F51");
  CHECK(codes(same, with([](Expectation::Gpu& e) { e.driver_min = "580"; })) == "F52");
  CHECK(codes(same, with([](Expectation::Gpu& e) { e.cuda_min = "13.0"; })) == "F52");
  CHECK(codes(same, with([](Expectation::Gpu& e) { e.cuda_min = "12.8"; })) == "ok");
}

TEST_CASE(
    "GPU verdict: links, where the kind of node is not known, are held against what is shown") {
  CHECK(codes([](GpuReport&, GpuDevice& gpu) {
          gpu.links = {{.link = 0, .active = true}, {.link = 1, .active = false}};
        }) == "F12");
  // A GPU outside a board with links shows all of them inactive.
  CHECK(codes([](GpuReport&, GpuDevice& gpu) {
          gpu.links = {{.link = 0, .active = false}, {.link = 1, .active = false}};
        }) == "ok");
  CHECK(codes([](GpuReport&, GpuDevice& gpu) {
          gpu.links = {{.link = 0, .active = true, .replays = 1}};
        }) == "F12");
}

TEST_CASE("GPU verdict: heat, replays and other return codes of NVML") {
  CHECK(codes([](GpuReport&, GpuDevice& gpu) { gpu.temperature_c = 95; }) == "F16");
  CHECK(codes([](GpuReport&, GpuDevice& gpu) { gpu.pcie_replays = 5000; }) == "F49");
  CHECK(codes([](GpuReport&, GpuDevice& gpu) {
          gpu.problem_code = 16;
          gpu.problem = "memory: GPU requires reset (NVML 16)";
        }) == "F17");
  CHECK(codes([](GpuReport&, GpuDevice& gpu) { gpu.clock_reasons = 0x1 | 0x4; }) == "ok");
  CHECK(slowdown_text(0x8 | 0x80) == "HW slowdown, HW power brake");
  CHECK(slowdown_text(0x20) == "SW thermal slowdown");
}

TEST_CASE("GPU verdict: every recovery action has its word") {
  CHECK(std::string(recovery_word(0)) == "none");
  for (unsigned action = 1; action <= 5; ++action)
    CHECK(codes([&](GpuReport&, GpuDevice& gpu) { gpu.recovery_action = action; }) == "F13");
  CHECK(std::string(recovery_word(4)) == "drain and reset");
  CHECK(std::string(recovery_word(77)) == "an action that this version does not know");
}

TEST_CASE("GPU verdict: without NVML it depends on whether GPUs are expected") {
  const auto none = [](GpuReport& gpus, GpuDevice&) { gpus = {.problem = "no library"}; };
  CHECK(codes(none) == "not checked");
  CHECK(codes(none, with([](Expectation::Gpu& e) { e.count = 8; })) == "F17");
  CHECK(codes(none, with([](Expectation::Gpu& e) { e.count = 0; })) == "ok");
  CHECK(codes([](GpuReport& gpus, GpuDevice&) { gpus = {.hung = true, .problem = "late"}; }) ==
        "F17");
}
