#include <doctest/doctest.h>

#include <random>

#include "lib/base/error.h"
#include "lib/health/gpu_report.h"

// What a child process says of GPUs arrives as it was, whatever of it is known.

using namespace mm::health;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  bool coin() { return number(1) == 0; }
  uint64_t number(uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(0, most)(random_);
  }
  template <typename T>
  void maybe(std::optional<T>& value) {
    if (coin()) value = static_cast<T>(number(1'000'000));
  }

 private:
  std::mt19937_64 random_;
};

GpuDevice device(Draw& draw) {
  GpuDevice gpu{.name = "H100 \"quoted\"", .uuid = "u", .bus_id = "0000:13:00.0"};
  gpu.memory_bytes = draw.number(~uint64_t{0});
  draw.maybe(gpu.ecc_corrected);
  draw.maybe(gpu.ecc_uncorrected);
  draw.maybe(gpu.ecc_uncorrected_total);
  if (draw.coin()) gpu.sram_over_threshold = draw.coin();
  if (draw.coin()) gpu.rows = RemappedRows{1, 2, draw.coin(), draw.coin()};
  draw.maybe(gpu.recovery_action);
  draw.maybe(gpu.clock_reasons);
  draw.maybe(gpu.temperature_c);
  draw.maybe(gpu.power_mw);
  draw.maybe(gpu.sm_clock_mhz);
  draw.maybe(gpu.pcie_generation);
  draw.maybe(gpu.pcie_width);
  draw.maybe(gpu.pcie_replays);
  for (uint64_t i = draw.number(18); i > 0; --i) {
    NvLink link{.link = static_cast<int>(i), .active = draw.coin()};
    if (draw.coin()) link.remote = "0000:05:00.0";
    link.to_switch = draw.coin();
    draw.maybe(link.replays);
    draw.maybe(link.crc_errors);
    gpu.links.push_back(link);
  }
  for (uint64_t i = draw.number(3); i > 0; --i)
    gpu.processes.push_back({static_cast<unsigned>(i), draw.number(1 << 30)});
  for (uint64_t i = draw.number(3); i > 0; --i)
    gpu.xid_events.push_back(static_cast<unsigned>(draw.number(200)));
  if (draw.coin()) gpu.problem = "memory: GPU is lost (NVML 15)";
  return gpu;
}

}  // namespace

TEST_CASE("GPU report: any mix of known and unknown survives JSON and its text") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    GpuReport report{.checked = draw.coin(), .hung = draw.coin(), .driver = "570", .cuda = "12.8"};
    for (uint64_t i = draw.number(8); i > 0; --i) report.devices.push_back(device(draw));
    const mm::Json json = gpus_json(report);
    const GpuReport back = gpus_from_json(mm::parse_json(json.dump(), "report"));
    CHECK(gpus_json(back) == json);
    CHECK(back.devices.size() == report.devices.size());
  }
}

TEST_CASE("GPU report: with any one key gone or of another type it is refused") {
  Draw draw(3);
  GpuReport report{.checked = true};
  report.devices.push_back(device(draw));
  report.devices.front().links.push_back({.link = 0, .active = true});
  const mm::Json good = gpus_json(report);
  for (const auto& [key, value] : good.items()) {
    CAPTURE(key);
    mm::Json json = good;
    json.erase(key);
    CHECK_THROWS_AS(gpus_from_json(json), mm::DataError);
  }
  for (const auto& [key, value] : good["devices"][0].items()) {
    CAPTURE(key);
    mm::Json gone = good, wrong = good;
    gone["devices"][0].erase(key);
    CHECK_THROWS_AS(gpus_from_json(gone), mm::DataError);
    wrong["devices"][0][key] = mm::Json{{"an", "object"}};
    CHECK_THROWS_AS(gpus_from_json(wrong), mm::DataError);
  }
  for (const auto& [key, value] : good["devices"][0]["links"][0].items()) {
    CAPTURE(key);
    mm::Json gone = good;
    gone["devices"][0]["links"][0].erase(key);
    CHECK_THROWS_AS(gpus_from_json(gone), mm::DataError);
  }
}
